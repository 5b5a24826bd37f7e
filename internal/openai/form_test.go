package openai

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// written returns a form as a real client writes it: a file of size bytes, and
// then the fields.
func written(tb testing.TB, size int, fields ...string) (body []byte, contentType string) {
	tb.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	file := must.Get(w.CreateFormFile("file", "speech.mp3"))(tb)
	_, _ = file.Write(bytes.Repeat([]byte("\r\n--noise"), size/9))
	for i := 0; i < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

func TestTheModelIsFoundBehindALargeFile(t *testing.T) {
	body, kind := written(t, 25<<20, "response_format", "json", "model", "whisper-1", "stream", "true")
	r := must.Get(PeekForm(body, kind))(t)
	if r.Model != "whisper-1" || !r.Stream || r.Sequences != 1 {
		t.Errorf("got model %q, stream %v, sequences %d", r.Model, r.Stream, r.Sequences)
	}
	edited := applied(t, body, r.Edit("openai/whisper-large-v3", AskUsage))
	if want := bytes.Replace(body, []byte("whisper-1"), []byte("openai/whisper-large-v3"), 1); !bytes.Equal(edited, want) {
		t.Error("the edit changed more than the model, or something else")
	}
	if same := r.Edit("", AskUsage); same != nil {
		t.Errorf("edits %v where there is nothing to be changed", same)
	}
}

// form returns a form of the parts, each a head and a value.
func formOf(parts ...string) string {
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		b.WriteString("--b\r\n" + parts[i] + "\r\n\r\n" + parts[i+1] + "\r\n")
	}
	return b.String() + "--b--\r\n"
}

const (
	modelHead  = `Content-Disposition: form-data; name="model"`
	formHeader = "multipart/form-data; boundary=b"
)

// A form without a model gets the field that the address or the target names.
func TestAFormIsNamed(t *testing.T) {
	const file = `Content-Disposition: form-data; name="file"; filename="x"`
	for _, body := range []string{formOf(file, "data"), "a preamble\r\n" + formOf(file, "data"), "--b--\r\n", formOf(file, "data", modelHead, "other")} {
		r, err := PeekForm([]byte(body), formHeader)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		r.Name("m")
		got, err := io.ReadAll(NewReader([]byte(body), r.Edit("", AskNothing)))
		must.Do(t, err)
		form, err := multipart.NewReader(bytes.NewReader(got), "b").ReadForm(1 << 20)
		if err != nil || len(form.Value["model"]) != 1 || form.Value["model"][0] != "m" || len(form.File["file"]) != strings.Count(body, "filename") {
			t.Errorf("%q became %q, which Go reads as %+v (%v)", body, got, form, err)
		}
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	good := formOf(modelHead, "m")
	for name, c := range map[string]struct{ body, kind string }{
		"no boundary":          {good, "multipart/form-data"},
		"other boundary":       {good, "multipart/form-data; boundary=c"},
		"empty":                {"", formHeader},
		"cut":                  {good[:len(good)-6], formHeader},
		"empty model":          {formOf(modelHead, ""), formHeader},
		"model twice":          {formOf(modelHead, "m", modelHead, "m"), formHeader},
		"model is a file":      {formOf(modelHead+`; filename="m"`, "m"), formHeader},
		"model in upper case":  {formOf(modelHead, "m", strings.ToUpper(modelHead), "m"), formHeader},
		"model in base64":      {formOf(modelHead+"\r\nContent-Transfer-Encoding: base64", "bQ=="), formHeader},
		"a part without name":  {formOf(modelHead, "m", "Content-Type: text/plain", "m"), formHeader},
		"two dispositions":     {formOf(modelHead, "m", `Content-Disposition: form-data; name="a"`+"\r\n"+modelHead, "m"), formHeader},
		"a folded header":      {formOf("Content-Disposition: form-data;\r\n name=\"model\"", "m"), formHeader},
		"a part without head":  {formOf(modelHead, "m") + "--b\r\n\r\nm\r\n--b--\r\n" + "", "multipart/form-data; boundary=x"},
		"delimiter, no value":  {"--b\r\n" + modelHead + "\r\n\r\n--b--\r\n", formHeader},
		"line ends without CR": {strings.ReplaceAll(good, "\r\n", "\n"), formHeader},
		"delimiter without CR": {"x\r\n--b\n\r\n" + good, formHeader},
		"at the very start":    {"--b\n\r\n" + good, formHeader},
		"begins without CR":    {"x\n--b\r\n" + modelHead + "\r\n\r\nother\r\n" + good, formHeader},
		"text behind blanks":   {formOf(`Content-Disposition: form-data; name="a"`, "\r\n--b x", modelHead, "m"), formHeader},
		"text behind the last": {formOf(`Content-Disposition: form-data; name="a"`, "\r\n--b--x", modelHead, "m"), formHeader},
		"too many parts":       {formOf(append([]string{modelHead, "m"}, strings.Split(strings.Repeat(`Content-Disposition: form-data; name="a"|v|`, maxParts)+"|", "|")[:2*maxParts]...)...), formHeader},
		"model too long":       {formOf(modelHead, strings.Repeat("m", maxFormValue+1)), formHeader},
		"head too long":        {formOf(modelHead+"\r\nX: "+strings.Repeat("x", maxPartHead), "m"), formHeader},
	} {
		r, err := PeekForm([]byte(c.body), c.kind)
		var bad *BadRequest
		if !errors.As(err, &bad) || bad.Message == "" {
			t.Errorf("%s: got model %q, error %v; want a BadRequest", name, r.Model, err)
		}
	}
	for name, body := range map[string]string{
		"plain":               good,
		"preamble, epilogue":  "preamble\r\n" + good + "epilogue",
		"no last line end":    strings.TrimSuffix(good, "\r\n"),
		"blanks behind":       strings.ReplaceAll(good, "--b\r\n", "--b \t\r\n"),
		"name without quotes": formOf("content-disposition:form-data;name=model", "m"),
		"longer line inside":  formOf(`Content-Disposition: form-data; name="a"`, "\r\n--bc\r\n--b-", modelHead, "m"),
		"an empty field":      formOf(`Content-Disposition: form-data; name="a"`, "", modelHead, "m"),
	} {
		if r, err := PeekForm([]byte(body), formHeader); err != nil || r.Model != "m" || r.Stream {
			t.Errorf("%s: got model %q, error %v; want m", name, r.Model, err)
		}
	}
}

// Whatever is taken, Go's own parser reads in the same way.
func FuzzPeekForm(f *testing.F) {
	f.Add([]byte(formOf(modelHead, "m")), formHeader)
	f.Add([]byte("x\r\n"+formOf(`Content-Disposition: form-data; name="a"`, "\r\n--bc", modelHead, "m")+"x"), formHeader)
	f.Add([]byte("--b\r\n"+modelHead+"\r\n\r\n--b--\r\n"), formHeader)
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		r, err := PeekForm(body, kind)
		if err != nil {
			return
		}
		_, params, _ := mime.ParseMediaType(kind)
		parts, models := multipart.NewReader(bytes.NewReader(body), params["boundary"]), 0
		for {
			p, err := parts.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("Go's parser refuses what was taken: %v", err)
			}
			if p.FormName() != "model" {
				continue
			}
			models++
			if text, _ := io.ReadAll(p); string(text) != r.Model {
				t.Fatalf("Go's parser reads model %q, Pacer %q", text, r.Model)
			}
		}
		if found := r.Model != ""; found != (models == 1) || models > 1 {
			t.Fatalf("Go's parser finds %d models, Pacer %q", models, r.Model)
		}
	})
}

// A form of 25 MB costs one search for its delimiter, here at its worst (it
// almost matches every 9 bytes): 50 ms, and no copy.
func BenchmarkPeekForm(b *testing.B) {
	body, kind := written(b, 25<<20, "model", "whisper-1")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(PeekForm(body, kind))(b)
	}
}

func TestResponseIDs(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"resp_1","object":"response"}`:                                     "resp_1",
		` {"object":"response","output":[{"id":"msg_1"}],"id":"resp_1"`:           "resp_1",
		`{"type":"response.created","response":{"x":{"id":"a"},"id":"resp_1","in`: "resp_1",
		`{"response":{"id":"resp_1"`:                                              "resp_1",
		`{"response":{"id":"resp_`:                                                "",
		`{"output":[{"id":"msg_1"}]}`:                                             "",
		`{"id":7}`:                                                                "",
		`{"id":"../secrets"}`:                                                     "",
		`{"id":".."}`:                                                             "",
		`{"id":"a?b"}`:                                                            "",
		`{"id":"` + strings.Repeat("x", maxResponseID+1) + `"}`:                   "",
		``:                  "",
		`[{"id":"resp_1"}]`: "",
		`{"type":"response.created","sequence_number":0,"response":{"error":null,`: "",
	} {
		if got := ResponseID([]byte(text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestStoreIsRead(t *testing.T) {
	for body, want := range map[string]bool{
		`{"model":"m","store":true}`:  true,
		`{"model":"m","store":false}`: false,
		`{"model":"m","store":null}`:  false,
		`{"model":"m","store":"yes"}`: true, // the backend's to refuse, or to take for true
		`{"model":"m"}`:               false,
	} {
		if r, err := Peek([]byte(body)); err != nil || r.Store != want {
			t.Errorf("%s: got %v, %v; want %v", body, r.Store, err, want)
		}
	}
	if _, err := Peek([]byte(`{"model":"m","Store":true}`)); err == nil {
		t.Error("a store that only some engines see was taken")
	}
}

func TestThePreviousResponseIsRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","previous_response_id":"resp_1"}`: "resp_1",
		`{"model":"m","previous_response_id":null}`:     "",
		`{"model":"m"}`: "",
	} {
		if r, err := Peek([]byte(body)); err != nil || r.PreviousResponseID != want {
			t.Errorf("%s: got %q, %v; want %q", body, r.PreviousResponseID, err, want)
		}
	}
	for _, body := range []string{
		`{"model":"m","previous_response_id":7}`,
		`{"model":"m","previous_response_id":"a","previous_response_id":"b"}`,
		`{"model":"m","Previous_Response_Id":"a"}`,
	} {
		if _, err := Peek([]byte(body)); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
}
