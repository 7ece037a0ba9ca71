package rights

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store"
)

// A small amount has one spelling in all sentences. The tests of the other programs and pages expect the same one.
func TestSmallAmounts(t *testing.T) {
	t.Parallel()
	got := Budgets{}.Refusal(&store.OverBudget{Spending: store.Spending{Scope: store.Fleet, Spent: 0.004, Budget: 0.006}}).Sentence
	if !strings.Contains(got, "is used up: under $0.01 of $0.01.") {
		t.Error(got)
	}
}
