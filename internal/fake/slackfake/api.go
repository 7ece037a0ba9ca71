package slackfake

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Call is one call of the Web API.
type Call struct {
	Method string     // as "chat.postMessage"
	Time   time.Time  // of its arrival
	Form   url.Values // the arguments, without the token
	Status int        // what it was answered; 0 while it is held back, or if the answer was lost
	Error  string     // Slack's code, Abandoned, or empty if it succeeded
}

// Abandoned is the Error of a held call whose client left before its time: it was never performed.
const Abandoned = "abandoned"

// method performs one method of the Web API. It is called with mu held and answers with the fields besides "ok", or
// with an apiError.
type method func(form url.Values) (answer, error)

type answer map[string]any

// apiError is a refusal as Slack words it. The details are the list that comes with invalid_blocks.
type apiError struct {
	code    string
	details []string
}

func (e apiError) Error() string { return e.code }

func refuse(code string) (answer, error) { return nil, apiError{code: code} }

// webAPI is the list of all methods we know: a new subject adds its lines here.
func (s *Server) webAPI() map[string]method {
	return map[string]method{
		appsConnectionsOpen: s.openConnection,
		appsManifestCreate:  s.createApp,

		"auth.test":             s.authTest,
		"bots.info":             s.botsInfo,
		"users.info":            s.usersInfo,
		"conversations.info":    s.conversationsInfo,
		"conversations.list":    s.conversationsList,
		"conversations.join":    s.conversationsJoin,
		"conversations.history": s.conversationsHistory,
		"conversations.replies": s.conversationsReplies,
		"chat.postMessage":      s.chatPostMessage,
		"chat.postEphemeral":    s.chatPostEphemeral,
		"chat.update":           s.chatUpdate,
		"chat.delete":           s.chatDelete,
		"chat.getPermalink":     s.chatGetPermalink,
		"reactions.add":         s.reactionsAdd,
		"reactions.remove":      s.reactionsRemove,

		"assistant.threads.setStatus": s.setThreadStatus,

		"views.open":    s.viewsOpen,
		"views.publish": s.viewsPublish,

		"files.getUploadURLExternal":   s.filesGetUploadURLExternal,
		"files.info":                   s.filesInfo,
		"files.completeUploadExternal": s.filesCompleteUploadExternal,
	}
}

// Calls is every call of the method so far in order of arrival, failed ones included; of all methods if method is
// empty.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			out = append(out, *c)
		}
	}
	return out
}

// serveAPI is one call from its arrival to its answer: record, hold, perform or fail. All but the hold is one step for
// everyone else, because methods only touch memory.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(r)
	if err != nil {
		reply{code: "invalid_form_data"}.write(w)
		return
	}
	token := form.Get("token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = bearer
	}
	form.Del("token")

	s.mu.Lock()
	call := &Call{Method: r.PathValue("method"), Time: s.cfg.Now(), Form: form}
	s.calls = append(s.calls, call)
	failure := s.nextFailure(call.Method)
	if failure != nil && failure.Hold != nil {
		s.notify()
		s.mu.Unlock()
		select {
		case <-failure.Hold:
		case <-r.Context().Done():
		}
		s.mu.Lock()
		if r.Context().Err() != nil {
			call.Error = Abandoned
			s.notify()
			s.mu.Unlock()
			return
		}
	}
	// Without a Hold the call and its effect appear together: who waits for the call finds the message.
	var rep reply
	if !failure.fails() || failure.After {
		rep = s.perform(call.Method, token, form)
	}
	if failure.fails() {
		rep = failure.reply()
	}
	if !rep.cut {
		call.Status, call.Error = max(rep.status, http.StatusOK), rep.code
	}
	s.notify()
	s.mu.Unlock()
	if len(s.cfg.Scopes) > 0 {
		w.Header().Set("X-Oauth-Scopes", strings.Join(s.cfg.Scopes, ","))
	}
	rep.write(w)
}

// tokenFor returns the token that a method wants.
func (s *Server) tokenFor(name string) string {
	switch name {
	case appsConnectionsOpen:
		return s.cfg.AppToken
	case appsManifestCreate:
		return s.cfg.ConfigToken
	}
	return s.cfg.BotToken
}

// perform does what the call asks for. The caller holds mu.
func (s *Server) perform(name, token string, form url.Values) reply {
	do, known := s.methods[name]
	switch {
	case !known:
		return reply{code: "unknown_method"}
	case token == "":
		return reply{code: "not_authed"}
	case token != s.cfg.BotToken && token != s.cfg.AppToken && token != s.cfg.ConfigToken:
		return reply{code: "invalid_auth"}
	case token != s.tokenFor(name):
		return reply{code: "not_allowed_token_type"}
	}
	body, err := do(form)
	if err == nil { // a refusal of the fake's own says more
		err = s.checkCall(name, form)
	}
	if err == nil {
		err = s.checkAnswer(name, body)
	}
	if err != nil {
		refused, _ := errors.AsType[apiError](err)
		return reply{code: err.Error(), details: refused.details}
	}
	return reply{body: body}
}
