package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/intake"
)

// interpreter turns events and comments into tasks. It is safe for concurrent use.
type interpreter struct {
	shared
	desk       *desk.Desk
	reviews    review.Submitter
	repository func(name string) bool   // reports whether events of a repository count; nil if all do
	base       func(name string) string // base branch of work on an issue, or "" for the default branch
	pacer      intake.Pacer             // limits the requests of one author in a conversation
}

// handler handles a delivery. It submits tasks, or does work that needs no agent, and says what it did.
type handler func(*interpreter, context.Context, delivery) (outcome string, err error)

// handlers has the actions of each event that errand handles. All others are ignored.
var handlers = map[string]handler{
	"pull_request " + subject.ActionOpened:          (*interpreter).review,
	"pull_request synchronize":                      (*interpreter).review,
	"pull_request reopened":                         (*interpreter).review,
	"pull_request ready_for_review":                 (*interpreter).review,
	"pull_request " + subject.ActionReviewRequested: (*interpreter).review,
	"pull_request " + actionEdited:                  (*interpreter).retargeted,
	"pull_request " + subject.ActionLabeled:         (*interpreter).labeled,
	"pull_request " + actionClosed:                  (*interpreter).endReviews,
	"pull_request converted_to_draft":               (*interpreter).endReviews,
	"issues " + subject.ActionOpened:                (*interpreter).remark,
	"issues " + subject.ActionLabeled:               (*interpreter).startIssue,
	"issues " + subject.ActionAssigned:              (*interpreter).startIssue,
	"issues " + actionClosed:                        (*interpreter).endIssue,
	"issues " + actionDeleted:                       (*interpreter).endIssue,
	"issues transferred":                            (*interpreter).endIssue,
	"issues locked":                                 (*interpreter).endIssue,
	"issues " + actionEdited:                        (*interpreter).amend,
	"issue_comment created":                         (*interpreter).remark,
	"issue_comment " + actionEdited:                 (*interpreter).amend,
	"issue_comment " + actionDeleted:                (*interpreter).withdraw,
	"pull_request_review_comment created":           (*interpreter).remark,
	"pull_request_review_comment " + actionDeleted:  (*interpreter).withdraw,
	"pull_request_review submitted":                 (*interpreter).remark,
	"check_run " + actionCompleted:                  (*interpreter).checked,
	"check_suite " + actionCompleted:                (*interpreter).checked,
	"workflow_run " + actionCompleted:               (*interpreter).checked,
	"check_run " + actionRerequested:                (*interpreter).checked,
	"check_suite " + actionRerequested:              (*interpreter).checked,
	"check_suite " + actionRequested:                (*interpreter).checked,
	"status":                                        (*interpreter).checked, // it has no actions
	kindRemark:                                      (*interpreter).remark,
	kindStart:                                       (*interpreter).polledStart,
}

// What polls find has other kinds than GitHub's events.
const (
	polledEvent = "polled"
	kindRemark  = polledEvent + " remark"
	kindStart   = polledEvent + " start"
)

// The actions that several events have.
const (
	actionEdited    = "edited" // of the title, of the text, or of the base
	actionClosed    = "closed"
	actionDeleted   = "deleted"
	actionCompleted = "completed"
)

// delivery is one webhook with a correct signature.
type delivery struct {
	id, event, action string
	payload           []byte
	again             bool // an attempt to interpret it has failed

	// The payload, decoded once by decode into the field for the event.
	pull   *github.PullRequestEvent // use its getters: the head of a deleted fork has no repository
	remark *remarkEvent
	check  *checkEvent
}

// interpret does what an event asks for. Doing it again changes nothing.
func (i *interpreter) interpret(ctx context.Context, e intake.Event) (outcome string, err error) {
	handle := handlers[e.Kind]
	if handle == nil {
		return "", fmt.Errorf("this front door does not know the event %s, a newer one might", e.Kind)
	}
	d := delivery{id: e.ID, payload: e.Body, again: e.Again}
	d.event, d.action, _ = strings.Cut(e.Kind, " ")
	outcome, err = i.handle(ctx, d, handle)
	log := i.log.With("delivery", e.ID, "event", d.event)
	if why, ok := errors.AsType[subject.Ignored](err); ok {
		log.Log(ctx, why.Level, "webhook ignored", "why", why.Why)
		return "Ignored: " + why.Why, nil
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		log.Warn("webhook refused", "why", input.Sentence)
		return "Refused: " + input.Sentence, nil
	}
	if err != nil {
		return "", i.api.ReportError("interpret "+e.Kind, err)
	}
	return outcome, nil
}

// handle decodes a delivery and handles it.
func (i *interpreter) handle(ctx context.Context, d delivery, handle handler) (outcome string, err error) {
	if err := d.decode(); err != nil {
		return "", err
	}
	if err := d.validate(); err != nil {
		return "", err
	}
	return handle(i, ctx, d)
}

// decode decodes the payload into the field for its event.
func (d *delivery) decode() (err error) {
	switch d.event {
	case "pull_request":
		d.pull = new(github.PullRequestEvent)
		err = readPayload(d.payload, d.pull)
	case "issues", "issue_comment", "pull_request_review_comment", "pull_request_review":
		d.remark, err = readRemarkEvent(*d)
	case polledEvent:
		d.remark = &remarkEvent{again: d.again}
		err = json.Unmarshal(d.payload, d.remark)
	default:
		d.check = new(checkEvent)
		err = readPayload(d.payload, d.check)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", intake.ErrUnreadable, err)
	}
	return nil
}

// readPayload decodes what it can: a field that has another type than today counts as absent, because a change of what
// errand does not read must not cost an event. validate finds what is missing.
func readPayload(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// validate refuses a payload that lacks required fields.
func (d *delivery) validate() error {
	if d.remark != nil {
		return d.remark.validate()
	}
	if d.pull == nil {
		return nil
	}
	pr := d.pull.GetPullRequest()
	if d.pull.GetRepo().GetFullName() == "" || pr.GetNumber() == 0 || pr.GetHead().GetSHA() == "" {
		return fmt.Errorf("%w: it contains no pull request", intake.ErrUnreadable)
	}
	return nil
}

// worksOn refuses repositories that errand does not work on.
func (i *interpreter) worksOn(repo string) error {
	if i.repository != nil && !i.repository(repo) {
		return subject.Ignore("Repository " + repo + " is not configured.")
	}
	return nil
}
