package subject

// The actions of requests: in a remark, and for work on an issue as a whole.
const (
	ActionAsked    = "asked"
	ActionLabeled  = "labeled"
	ActionAssigned = "assigned"
	ActionOpened   = "opened" // in repositories where every issue is answered
)

// ActionPolled is the action of work that the poller found. Tasks in Redis have it, so the word stays.
const ActionPolled = "looked"

// ActionReviewRequested is the action of requesting errand's review. GitHub lets triagers do so as well.
const ActionReviewRequested = "review_requested"
