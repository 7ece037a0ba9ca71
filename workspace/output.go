package workspace

import (
	"net/url"
	"strings"
)

// head keeps the first max bytes and refuses the rest, which ends the writing process (SIGPIPE).
type head struct {
	kept []byte
	max  int
	full bool // more than max came
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.max-len(h.kept))
	h.kept = append(h.kept, p[:n]...)
	if n < len(p) {
		h.full = true
		return n, errLong
	}
	return n, nil
}

// tail keeps the last max bytes.
type tail struct {
	kept []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.max; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// redact removes the secret, also as it would look inside a URL. A cut at the head of a tail may split the secret, so
// a remainder at the very beginning goes too.
func redact(s, secret string) string {
	if secret == "" {
		return s
	}
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		s = strings.ReplaceAll(s, form, "[redacted]")
		for i := 1; i < len(form)-3; i++ {
			if rest, found := strings.CutPrefix(s, form[i:]); found {
				s = "[redacted]" + rest
				break
			}
		}
	}
	return s
}
