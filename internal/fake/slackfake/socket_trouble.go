package slackfake

import "github.com/gorilla/websocket"

// Frame sends a text to the app on every connection as it is, be it an envelope or not.
func (s *Server) Frame(text string) { s.each(func(k *socket) { _ = k.raw(text) }) }

func (k *socket) raw(text string) error {
	k.write.Lock()
	defer k.write.Unlock()
	return k.conn.WriteMessage(websocket.TextMessage, []byte(text))
}

// Disconnect tells the app on every connection to make another: reason is warning, refresh_requested or link_disabled.
// It is then up to the app to close the old one, or to Cut.
func (s *Server) Disconnect(reason string) {
	s.each(func(k *socket) {
		k.leaving = true
		_ = k.send(answer{"type": "disconnect", "reason": reason, "debug_info": s.debugInfo(k)})
	})
}

// Cut ends every connection without a word, as a network does.
func (s *Server) Cut() { s.each(func(k *socket) { _ = k.conn.NetConn().Close() }) }

// Silence leaves the connections that there are open and says nothing on them any more, pings and pongs included: what
// people call silent death (openclaw#27232).
func (s *Server) Silence() {
	s.each(func(k *socket) {
		if !k.muted {
			k.muted = true
			close(k.mute)
		}
	})
}

func (s *Server) each(do func(*socket)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		do(k)
	}
	s.notify()
}
