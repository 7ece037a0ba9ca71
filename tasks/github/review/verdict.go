package review

import (
	"strings"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/settings"
)

// keptVerdict returns the stored verdict for a later head whose review was refused because it has the same changes.
func keptVerdict(v hub.Verdict, e tasks.Ending) hub.Verdict {
	v.Summary, v.At = markdown.Unping(untrusted.Line(e.Sentence(), 500)), e.At
	return v
}

// verdictOf returns the verdict on an ending without findings.
func verdictOf(e tasks.Ending) hub.Verdict {
	v := hub.Verdict{Conclusion: conclusion(e.Kind), At: e.At}
	if e.Kind == tasks.Answered {
		v.Title, v.Line = "Reviewed", "Reviewed, see the conversation"
		v.Summary = "The review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())
		return v
	}
	v.Title, v.Line = "Not reviewed", "Not reviewed: "+markdown.Unping(untrusted.Line(e.Sentence(), 500))
	v.Summary = v.Line
	return v
}

// unpostedVerdict returns the verdict on a review that GitHub does not let errand post.
func unpostedVerdict(e tasks.Ending) hub.Verdict {
	v := verdictOf(tasks.Ending{
		Kind:   tasks.Failed,
		Reason: "GitHub does not let errand comment. The answer is in the run's log.", At: e.At,
	})
	v.State = hub.StatusError
	return v
}

// statusOf returns the state of a commit status for an ending. A commit without a review never looks like one that was
// reviewed, unless the repository's settings want no review. Where another task continues the review of the same head,
// the commit waits for that one; one of a later head needs nothing more.
func statusOf(e tasks.Ending, head string) string {
	switch {
	case e.Kind == tasks.Superseded && strings.HasPrefix(e.Reason, SupersededBy+hub.ShortSHA(head)):
		return hub.StatusPending
	case e.Kind == tasks.Answered, e.Kind == tasks.Superseded, strings.HasPrefix(e.Reason, settings.Reason):
		return ""
	}
	return hub.StatusError
}

// conclusion returns the conclusion for an ending without findings. It is never one that GitHub counts as failed, such
// as timed_out: a problem of errand must not fail the change. It is not success
// either, which would mean that there is nothing to read.
func conclusion(k tasks.EndingKind) string {
	if k == tasks.Cancelled || k == tasks.Taken {
		return "cancelled"
	}
	return "neutral"
}
