package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// requestName names a line in the output.
func requestName(c Claim) string { return fmt.Sprintf("batch_req_%s_%d", c.Job, c.Line+1) }

// perRead is how many results are read at once.
const perRead = 64

// WriteOutput writes the answers of a job, a line each in the order of its file:
// those of status 200, or the others. Lines that nobody came to do are among the
// others once the job is over.
func WriteOutput(ctx context.Context, s Store, j Job, good bool, to io.Writer) error {
	content, err := s.Content(ctx, j.Input)
	if err != nil && good {
		content = nil // the answers are there without it
	}
	in := Split(content)
	for from := 0; from < j.Total; from += perRead {
		results, err := s.Results(ctx, j.ID, from, perRead)
		if err != nil {
			return err
		}
		for i, result := range results {
			if result == nil {
				if good || !j.Status.Over() || j.Status == Failed {
					continue
				}
				line, _ := in.Line(from + i)
				code, message := "batch_cancelled", "This request was not done before the batch was cancelled."
				if j.Status == Expired {
					code, message = "batch_expired", "This request could not be done before the completion window was over."
				}
				result = resultLine(Claim{j.ID, from + i}, line.CustomID, Answer{}, code, message)
			} else if Good(result) != good {
				continue
			}
			if _, err := to.Write(append(result[:len(result):len(result)], '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

// Good reports whether a result has an answer of status 200.
func Good(result []byte) bool {
	var line struct {
		Response *struct {
			Status int `json:"status_code"`
		} `json:"response"`
	}
	return json.Unmarshal(result, &line) == nil && line.Response != nil && line.Response.Status == 200
}
