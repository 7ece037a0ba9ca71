package slackfake

import (
	"net/http"
	"strconv"
)

// Failure is what calls of one method meet. Status, Error and RetryAfter say what is answered; if all three are zero
// nothing is: the connection is cut (unless there is only a Hold, then the call just takes its time).
//
// A cut GET may be sent again by net/http itself and meet the next Failure; Slack's only GET that slack-go sends is
// chat.getPermalink.
type Failure struct {
	Times  int    // how many calls; 0 means one, negative all until Heal
	Status int    // HTTP status; 200 if there is an Error, 429 if there is a RetryAfter
	Error  string // Slack's code, as "internal_error"; of a 429 "ratelimited"
	// seconds; a 429 always has the header, be it 0, because slack-go reads one without as another error
	RetryAfter int
	After      bool // perform the call first: the effect is there, only the answer is lost

	// Hold keeps the call back, recorded but not performed, until it is closed. A call whose client leaves meanwhile is
	// never performed.
	Hold <-chan struct{}
}

// Fail makes the next calls of the method fail. Further failures of the same method queue up behind.
func (s *Server) Fail(method string, f Failure) {
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[method] = append(s.failures[method], f)
}

// Heal forgets what is left of the method's failures.
func (s *Server) Heal(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failures, method)
}

// nextFailure takes one failure of the method, nil if none is due. The caller holds mu.
func (s *Server) nextFailure(method string) *Failure {
	queue := s.failures[method]
	if len(queue) == 0 {
		return nil
	}
	f := queue[0]
	if queue[0].Times--; queue[0].Times == 0 {
		s.failures[method] = queue[1:]
	}
	return &f
}

// fails says whether there is more to the failure than a Hold.
func (f *Failure) fails() bool {
	return f != nil && (f.Hold == nil || f.After || f.Status != 0 || f.Error != "" || f.RetryAfter != 0)
}

func (f *Failure) reply() reply {
	r := reply{status: f.Status, code: f.Error}
	switch {
	case f.Status == 0 && f.Error == "" && f.RetryAfter == 0:
		return reply{cut: true}
	case f.Status == 0 && f.RetryAfter != 0:
		r.status = http.StatusTooManyRequests
	case f.Status == 0:
		r.status = http.StatusOK
	}
	if r.status == http.StatusTooManyRequests {
		r.retryAfter = strconv.Itoa(f.RetryAfter)
		if r.code == "" {
			r.code = "ratelimited"
		}
	}
	return r
}
