package main

import (
	"log/slog"
	"strings"
)

// clientNotices takes what the HTTP client, which has no logger of its own,
// writes to the standard one. Such a notice quotes what a backend sent unasked,
// which may be the text of an answer: it is passed on up to the quote.
type clientNotices struct{ log *slog.Logger }

func (n clientNotices) Write(line []byte) (int, error) {
	notice, _, _ := strings.Cut(string(line), `"`)
	n.log.Warn("notice of the HTTP client", "notice", strings.TrimSpace(notice))
	return len(line), nil
}
