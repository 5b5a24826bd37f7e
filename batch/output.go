package batch

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// requestName names a line in the output.
func requestName(c Claim) string { return fmt.Sprintf("batch_req_%s_%d", c.Job, c.Line+1) }

// perRead is how many results are read at once, at most.
const perRead = 64

// WriteOutput writes the answers of a job, a line each in the order of its file:
// those of status 200, or the others. Lines that nobody came to do are among the
// others once the job is over.
func WriteOutput(ctx context.Context, s Store, j Job, good bool, to io.Writer) error {
	var in Input // names the lines that nobody came to do
	if HoldsInput(j, good) {
		content, _ := s.Content(ctx, j.Input) // what was done is there without it
		in = Split(content)
	}
	for from, read := 0, 0; from < j.Total; from += read {
		results, err := s.Results(ctx, j.ID, from, perRead)
		if err != nil {
			return err
		}
		if read = len(results); read == 0 {
			return ErrNotFound // it has fewer lines by now
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

// HoldsInput reports whether WriteOutput holds the job's file, as there are lines to name
// that nobody came to do.
func HoldsInput(j Job, good bool) bool { return !good && j.Completed+j.Failed < j.Total }

// Good reports whether a result has an answer of status 200. It looks for what
// resultLine writes, and reads no answer: to parse all of them cost more than to send
// them. No string before the status can hold these bytes, as its quotes are escaped.
func Good(result []byte) bool {
	_, behind, ok := bytes.Cut(result, []byte(`"response":{"status_code":`))
	return ok && bytes.HasPrefix(behind, []byte("200,"))
}
