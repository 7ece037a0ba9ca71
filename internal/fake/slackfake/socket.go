package slackfake

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// socket is one connection of the app in Socket Mode.
type socket struct {
	conn   *websocket.Conn
	number int
	closed chan struct{} // when it is read no more
	write  sync.Mutex    // gorilla has one writer at a time
	mute   chan struct{} // closed when it goes silent without an end: see Silence

	// What follows is guarded by Server.mu.
	leaving bool // it was asked to disconnect and gets no more envelopes
	muted   bool
}

// appsConnectionsOpen is the one method that wants the app's token and not the bot's.
const appsConnectionsOpen = "apps.connections.open"

// openConnection gives the address of a websocket, good for one connection.
func (s *Server) openConnection(url.Values) (answer, error) {
	ticket := rand.Text()
	s.tickets[ticket] = true
	return answer{"url": "ws" + strings.TrimPrefix(s.url, "http") + "/link/?ticket=" + ticket + "&app_id=" +
		s.cfg.AppID}, nil
}

// Sockets is how many connections the app has in Socket Mode, including those that were asked to disconnect and have
// not yet.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets)
}

// Dialled is how many connections there have been in all.
func (s *Server) Dialled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialled
}

// Pongs is how many pings the app has answered.
func (s *Server) Pongs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pongs
}

// serveSocket is one connection: a greeting, pings, and acks until it ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	valid := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !valid {
		http.Error(w, "no such ticket", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // clients say what they like
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer conn.Close()
	k := &socket{conn: conn, closed: make(chan struct{}), mute: make(chan struct{})}
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		select {
		case <-k.mute:
			return nil
		default:
			return pong(data)
		}
	})
	conn.SetPongHandler(func(string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pongs++
		s.notify()
		return nil
	})
	if !s.welcome(k) {
		return
	}
	defer s.part(k)
	go s.ping(k)
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		s.acknowledge(message)
	}
}

// welcome adds a connection and greets it.
func (s *Server) welcome(k *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.dialled++
	k.number = s.dialled
	s.sockets = append(s.sockets, k)
	err := k.send(answer{
		"type": "hello", "num_connections": len(s.sockets), "connection_info": answer{"app_id": s.cfg.AppID},
		"debug_info": s.debugInfo(k),
	})
	s.notify()
	return err == nil
}

func (s *Server) debugInfo(k *socket) answer {
	return answer{"host": fmt.Sprintf("applink-%d", k.number), "build_number": 1, "approximate_connection_time": 3600}
}

// part forgets a connection that has ended.
func (s *Server) part(k *socket) {
	close(k.closed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(other *socket) bool { return other == k })
	s.notify()
}

// ping goes on until the connection ends or is silenced: clients take one without pings for dead.
func (s *Server) ping(k *socket) {
	tick := time.NewTicker(s.cfg.PingEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.closed:
			return
		case <-k.mute:
			return
		case now := <-tick.C:
			text := fmt.Sprintf("Ping from applink-%d, %d", k.number, now.UnixNano())
			// its reader reports one that has ended
			_ = k.conn.WriteControl(websocket.PingMessage, []byte(text), now.Add(time.Second))
		}
	}
}

func (k *socket) send(message any) error {
	k.write.Lock()
	defer k.write.Unlock()
	_ = k.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return k.conn.WriteJSON(message)
}
