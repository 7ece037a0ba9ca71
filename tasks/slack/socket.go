package slack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// rhythm is how a connection in Socket Mode is kept. Only tests change it.
type rhythm struct {
	pause  time.Duration // before a connection is made again; doubled up to most while that fails
	most   time.Duration
	pings  time.Duration // without any word of Slack's, pings included, after which a connection is dead
	quiet  time.Duration // without an event after which one is replaced that seems to live
	linger time.Duration // for which one that is replaced goes on
}

// Slack pings every few seconds. It also happens that pings go on and events do not come any more; Slack repeats an event for the last
// time after some 6 minutes, so within that time there has to be another connection for it. In a quiet workspace it costs a call.
var slacksRhythm = rhythm{pause: time.Second, most: time.Minute, pings: 30 * time.Second, quiet: 5 * time.Minute, linger: 10 * time.Second}

// keepConnected has a connection in Socket Mode until ctx ends, whatever Slack says: what is wrong today, a token or a setting of the app,
// may be mended there.
//
// slack-go's managed client is not used. It drops a connection, with all acks that are under way, before it asks for the next, parses
// events by a form stricter than ours, and its end and its silence would have to be watched from outside all the same.
func (s *Source) keepConnected(ctx context.Context, d *tasks.Desk) {
	pause := s.rhythm.pause
	for {
		greeted, err := s.connect(ctx, d)
		if ctx.Err() != nil {
			return
		}
		if greeted {
			pause = s.rhythm.pause
		}
		wait := pause + rand.N(pause) //nolint:gosec // it only keeps the front doors of a fleet from coming back all at once
		if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
			wait = max(wait, limited.RetryAfter)
		}
		if err != nil {
			s.inbound.ConnectionFailed(err)
			s.log.Warn("connection to Slack", "err", err, "again", wait)
		}
		pause = min(2*pause, s.rhythm.most)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// connect makes a connection and returns when another is needed: with an error when this one has ended, without one when it goes on for a
// while. greeted says that Slack let us in.
func (s *Source) connect(ctx context.Context, d *tasks.Desk) (greeted bool, err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return false, fmt.Errorf("connect to Slack: %w", err)
	}
	l := newLink(s, conn)
	go l.read(ctx, d)
	select {
	case <-l.leaving:
		time.AfterFunc(s.rhythm.linger, l.close)
	case <-l.ended:
		err = fmt.Errorf("connection to Slack ended: %w", l.err)
	}
	return l.greeted.Load(), err
}

// dial asks for an address and connects to it. The address holds a ticket and appears in no error.
func (s *Source) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, addr, err := s.api.StartSocketModeContext(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := url.Parse(addr); err != nil {
		return nil, errors.New("it gave an address that is none")
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: callLimit}
	conn, resp, err := dialer.DialContext(ctx, addr, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}
