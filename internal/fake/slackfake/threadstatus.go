package slackfake

import "net/url"

// ThreadStatus is what the app says below a thread that it does; empty if it says nothing.
func (s *Server) ThreadStatus(channel, ts string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[channel+"/"+ts]
}

// setThreadStatus takes the ts of any message that exists, and refuses others with invalid_thread_ts
// (typeclaw/typeclaw#582). A post of the app's in the thread removes the status, as an empty one does; that Slack
// removes it after two minutes has no equal here.
func (s *Server) setThreadStatus(f url.Values) (answer, error) {
	ch, err := s.writable(f.Get("channel_id"))
	if err != nil {
		return nil, err
	}
	thread, status := f.Get("thread_ts"), f.Get("status")
	switch {
	case !f.Has("status"):
		return refuse("invalid_arguments")
	case s.find(ch.ID, thread) == nil:
		return refuse("invalid_thread_ts")
	case status == "":
		delete(s.statuses, ch.ID+"/"+thread)
	default:
		s.statuses[ch.ID+"/"+thread] = status
	}
	return answer{}, nil
}
