package slackfake

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const maxPage = 1000 // messages; a higher limit is cut, since a page may always hold fewer than asked for

// conversationsReplies gives the root, then the replies, oldest first. The root comes whatever the time range, and
// once: it counts as one of the first page and later pages are without it.
func (s *Server) conversationsReplies(f url.Values) (answer, error) {
	ch, err := s.open(f.Get("channel"))
	if err != nil {
		return nil, err
	}
	root := s.find(ch.ID, f.Get("ts"))
	if root == nil {
		return refuse("thread_not_found")
	}
	thread := []*record{root}
	if root.ThreadTS == "" { // the ts of a reply gives that reply alone (bolt-python#783)
		replies, err := inRange(s.replies(ch.ID, root.TS), f)
		if err != nil {
			return nil, err
		}
		thread = append(thread, replies...)
	}
	return s.page(thread, f, maxPage, func(r *record, from int64) bool { return stamp(r) >= from })
}

// conversationsHistory gives what is at the top level of the channel, newest first.
func (s *Server) conversationsHistory(f url.Values) (answer, error) {
	ch, err := s.open(f.Get("channel"))
	if err != nil {
		return nil, err
	}
	top, err := inRange(s.replies(ch.ID, ""), f)
	if err != nil {
		return nil, err
	}
	slices.Reverse(top)
	return s.page(top, f, 100, func(r *record, from int64) bool { return stamp(r) <= from })
}

// inRange keeps what lies between oldest and latest, which themselves belong to it only if inclusive is set.
func inRange(in []*record, f url.Values) ([]*record, error) {
	oldest, latest, slack := int64(-1), int64(1)<<62, int64(1)
	var ok bool
	if v := f.Get("oldest"); v != "" {
		if oldest, ok = micros(v); !ok {
			return nil, apiError{code: "invalid_ts_oldest"}
		}
	}
	if v := f.Get("latest"); v != "" {
		if latest, ok = micros(v); !ok {
			return nil, apiError{code: "invalid_ts_latest"}
		}
	}
	if yes(f.Get("inclusive")) {
		slack = 0
	}
	return slices.DeleteFunc(in, func(r *record) bool {
		at := stamp(r)
		return at < oldest+slack || at > latest-slack
	}), nil
}

// page cuts the part out that cursor and limit ask for. A cursor names the first message of its page by time, so
// that messages that come or go meanwhile shift nothing; reached says whether a message is at that time or behind it in
// the order of the answer.
func (s *Server) page(all []*record, f url.Values, limit int,
	reached func(r *record, from int64) bool,
) (answer, error) {
	if v := f.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return refuse("invalid_limit")
		}
		if n > 0 {
			limit = min(n, maxPage)
		}
	}
	if v := f.Get("cursor"); v != "" {
		raw, err := base64.StdEncoding.DecodeString(v)
		from, ok := micros(strings.TrimPrefix(string(raw), "next_ts:"))
		if err != nil || !ok {
			return refuse("invalid_cursor")
		}
		first := slices.IndexFunc(all, func(r *record) bool { return reached(r, from) })
		if first < 0 {
			first = len(all)
		}
		all = all[first:]
	}
	next := ""
	if len(all) > limit {
		next = base64.StdEncoding.EncodeToString([]byte("next_ts:" + all[limit].TS))
		all = all[:limit]
	}
	messages := []wireMessage{}
	for _, r := range all {
		messages = append(messages, s.wire(r, yes(f.Get("include_all_metadata"))))
	}
	return answer{
		"messages":          messages,
		"has_more":          next != "",
		"response_metadata": answer{"next_cursor": next},
	}, nil
}

// stamp is the time of a stored message, whose ts is always well formed.
func stamp(r *record) int64 {
	at, _ := micros(r.TS)
	return at
}

// yes reads a boolean argument: slack-go sends 1, other clients true.
func yes(v string) bool { return v == "1" || v == "true" }
