package subject

// The kinds of tasks.
const (
	KindReview         = "review"
	KindComment        = "comment"
	KindAnalyze        = "analyze"
	KindFix            = "fix"
	KindCheckFailure   = "check_failure"
	KindMergeConflict  = "merge_conflict"
	KindReviewResponse = "review_response"
	KindIssue          = "issue"
)

// Kind describes tasks of a kind.
type Kind struct {
	Title     string // of those that errand submits by itself
	Automatic bool   // done without a request, unless the repository's settings switch it off
	Asks      bool   // the agent may ask the requester
}

// Kinds has all kinds. Each may have a model in a repository's settings.
var Kinds = map[string]Kind{
	KindReview:         {Automatic: true},
	KindComment:        {Asks: true},
	KindAnalyze:        {},
	KindFix:            {Asks: true},
	KindCheckFailure:   {Title: "Failed checks", Automatic: true, Asks: true},
	KindMergeConflict:  {Title: "Conflicts", Automatic: true, Asks: true},
	KindReviewResponse: {Automatic: true, Asks: true},
	KindIssue:          {Asks: true},
}
