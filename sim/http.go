package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := strings.HasPrefix(r.URL.Path, "/sim/")
	if s.faults.Load().Refuse && !control {
		reset(w)
	}
	if s.loading.Load() && !control {
		writeError(w, &apiError{status: http.StatusServiceUnavailable, kind: "unavailable_error", message: "Loading model"})
		return
	}
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1/responses/") {
		path = "/v1/responses/"
	}
	e, ok := endpoints[path]
	if !ok {
		writeJSON(w, http.StatusNotFound, detail{"Not Found"})
		return
	}
	if r.Method != e.method && e.method != "" {
		w.Header().Set("Allow", e.method)
		writeJSON(w, http.StatusMethodNotAllowed, detail{"Method Not Allowed"})
		return
	}
	if err := e.serve(s, w, r); err != nil {
		writeError(w, err)
	}
}

// endpoint serves one path. An error it returns becomes the answer, so it has
// written nothing then.
type endpoint struct {
	method string // empty = any
	serve  func(*Server, http.ResponseWriter, *http.Request) error
}

var endpoints = map[string]endpoint{
	"/v1/chat/completions": {http.MethodPost, (*Server).serveChat},
	"/v1/completions":      {http.MethodPost, (*Server).serveCompletions},
	"/v1/responses":        {http.MethodPost, (*Server).serveResponses},
	"/v1/responses/":       {"", (*Server).serveResponse},
	"/v1/messages":         {http.MethodPost, (*Server).serveMessages},
	"/v1/embeddings":       {http.MethodPost, atOnce((*Server).embeddings)},
	"/v1/rerank":           {http.MethodPost, atOnce((*Server).rerank)},
	"/v1/moderations":      {http.MethodPost, atOnce((*Server).moderations)},

	"/v1/images/generations":   {http.MethodPost, atOnce((*Server).images)},
	"/v1/audio/speech":         {http.MethodPost, (*Server).serveSpeech},
	"/v1/audio/transcriptions": {http.MethodPost, (*Server).serveTranscriptions},

	"/v1/models": {http.MethodGet, (*Server).serveModels},
	"/health":    {http.MethodGet, (*Server).serveHealth},
	"/metrics":   {http.MethodGet, (*Server).serveMetrics},
	"/sim/truth": {http.MethodGet, (*Server).serveTruth},
	"/sim/set":   {http.MethodPost, (*Server).serveSet},
	"/sim/reset": {http.MethodPost, (*Server).serveReset},
}

// detail is how vLLM's web framework says no.
type detail struct {
	Detail string `json:"detail"`
}

// apiError is an error in vLLM's shape: OpenAI's, with a number as code.
type apiError struct {
	status  int
	kind    string
	param   string // empty = null
	message string
}

func (e *apiError) Error() string { return e.message }

func badRequest(param, format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, kind: "BadRequestError", param: param, message: fmt.Sprintf(format, args...)}
}

func writeError(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = &apiError{status: http.StatusInternalServerError, kind: "InternalServerError", message: err.Error()}
	}
	type errorObject struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	body := struct {
		Error errorObject `json:"error"`
	}{errorObject{Message: e.message, Type: e.kind, Code: e.status}}
	if e.param != "" {
		body.Error.Param = &e.param
	}
	writeJSON(w, e.status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, raw := body.(rawText)
	data := []byte(text)
	if !raw {
		data = marshal(body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	// A client that is gone needs no answer, and net/http closes the rest.
	_, _ = w.Write(data)
}

// marshal is v, a value of our own types, as JSON.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// reset ends the connection as if nobody had listened, or as near as a handler
// comes to it: on TCP the client sees a reset.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // at worst the client sees the end instead
		}
		conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// serves reports whether a request may name model; an empty name means
// whatever is there, as with vLLM.
func (s *Server) serves(model string) bool {
	return model == "" || s.quirks.anyModel || slices.Contains(s.names, model)
}

func (s *Server) serveModels(w http.ResponseWriter, _ *http.Request) error {
	type card struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		Created     int64   `json:"created"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen int     `json:"max_model_len"`
	}
	list := struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}{Object: "list"}
	for _, name := range s.names {
		list.Data = append(list.Data, card{
			ID: name, Object: "model", Created: time.Now().Unix(), OwnedBy: "vllm", Root: s.names[0], MaxModelLen: maxModelLen,
		})
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}
