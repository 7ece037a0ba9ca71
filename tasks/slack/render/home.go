package render

import (
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// Home is a person's page in the app: their tasks, each with its thread (empty: unknown), and how to use errand.
func (c Console) Home(
	own []tasks.Status, thread func(tasks.Task) string, help string, now time.Time,
) slack.HomeTabViewRequest {
	blocks := []slack.Block{slack.NewHeaderBlock(plainText("Your latest tasks"))}
	for _, st := range own {
		blocks = append(blocks, slack.NewSectionBlock(mrkdwnText(c.homeTask(st, thread(st.Task), now)), nil, nil))
	}
	if len(own) == 0 {
		blocks = append(blocks, slack.NewSectionBlock(plainText("You have no recent tasks in Slack."), nil, nil))
	}
	blocks = append(blocks, slack.NewDividerBlock(), slack.NewContextBlock("", mrkdwnText(Escape(help))))
	return slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: blocks}}
}

// maxHome is how much of a detail and of a repository the home tab shows, in characters. Slack takes 3,000 for a task,
// and escaped text grows up to fivefold.
const maxHome = 150

// homeTask is one task in mrkdwn: what was asked, its state, and where more of it is.
func (c Console) homeTask(st tasks.Status, thread string, now time.Time) string {
	h := st.Headline(now)
	h.Detail = untrusted.Short(h.Detail, maxHome)
	state := Headline(h)
	var links []Button
	if thread != "" {
		links = append(links, Button{Text: "Thread", URL: thread})
	}
	if st.Ending != nil {
		state = Ended(*st.Ending)
		links = append(links, pullButtons(st.Ending)...)
	}
	where := append(buttonLinks(append(links, c.LogButton(st.Task.ID)...)),
		Literal(strings.Join(st.Task.Repositories(), ", "), maxHome), moment("", st.Created))
	return Literal(st.Task.Title(), MaxSentence) + "\n" + state.State + "\n" + Dots(where...)
}
