package slackfake

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"

	"github.com/errand-fleet/errand/internal/fake/contract"
)

//go:embed schemas.json.gz
var zippedSchemas []byte

// Contract returns the types of Slack's own SDK as schemas: "chat.postMessage argument", "chat.postMessage answer",
// "message event", "block" and "manifest".
var Contract = contract.Embedded(zippedSchemas)

// Breaches returns what arguments, answers and events had that the types of Slack's SDK do not allow, and forgets it.
// Such a call is also refused. Close panics if any is left, so that no test can overlook one.
func (s *Server) Breaches() []string { return s.breaches.Drain() }

// checkCall compares the arguments of a call with the SDK's types. The caller holds mu.
func (s *Server) checkCall(name string, form url.Values) error {
	schema := name + " argument"
	if !Contract().Has(schema) {
		return nil // perform refuses an unknown method
	}
	args := Contract().Form(schema, form)
	delete(args, "team_id") // Slack's SDK adds it to every call, also where its types have no such argument
	if m, ok := args["metadata"].(map[string]any); ok && len(m) == 0 && name == "chat.update" {
		delete(args, "metadata") // it takes the metadata away, says the reference of chat.update; the types forget that
	}
	return s.breach(Contract().Check(schema, args, true))
}

// checkAnswer compares a successful answer with the SDK's types. The caller holds mu.
func (s *Server) checkAnswer(name string, body answer) error {
	whole := answer{"ok": true}
	maps.Copy(whole, body)
	return s.checkJSON(name+" answer", whole)
}

// completeEvent adds to an event what Slack always sends, and compares it with the SDK's types. The caller holds mu.
func (s *Server) completeEvent(schema string, event any) any {
	whole, err := asJSON(event)
	if err != nil {
		panic(err) // it is made here
	}
	whole = Contract().Complete(schema, whole, s.url)
	_ = s.breach(Contract().Check(schema, whole, true)) // recorded; the event goes out all the same
	return whole
}

// checkJSON compares what is sent as JSON with a schema. The caller holds mu.
func (s *Server) checkJSON(schema string, v any) error {
	decoded, err := asJSON(v)
	if err != nil {
		return fmt.Errorf("check %s: %w", schema, err)
	}
	return s.breach(Contract().Check(schema, decoded, true))
}

// asJSON returns what a client would decode.
func asJSON(v any) (decoded any, err error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	return decoded, err
}

func (s *Server) breach(err error) error {
	if err == nil {
		return nil
	}
	s.breaches.Add(err.Error())
	return apiError{code: "invalid_arguments", details: []string{err.Error()}}
}
