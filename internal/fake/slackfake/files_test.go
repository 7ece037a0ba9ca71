package slackfake_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func attach(c *slack.Client, t *testing.T, change ...func(*slack.UploadFileParameters)) (*slack.FileSummary, error) {
	t.Helper()
	p := slack.UploadFileParameters{
		Filename: "report.md", Title: "Report", FileSize: 4, Reader: strings.NewReader("fine"), InitialComment: "see",
		Channel: channel,
	}
	for _, do := range change {
		do(&p)
	}
	return c.UploadFileContext(t.Context(), p)
}

func TestFileRefusals(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{Channels: []slackfake.Channel{
		{ID: "C0OLD", Archived: true}, {ID: "C0FAR", Outside: true},
	}})
	root := seed(t, s, slackfake.Message{Text: "please"})
	reply := seed(t, s, slackfake.Message{Text: "more", ThreadTS: root})
	for code, change := range map[string]func(*slack.UploadFileParameters){
		"is_archived":             func(p *slack.UploadFileParameters) { p.Channel = "C0OLD" },
		"not_in_channel":          func(p *slack.UploadFileParameters) { p.Channel = "C0FAR" },
		"cannot_reply_to_message": func(p *slack.UploadFileParameters) { p.ThreadTimestamp = reply },
		"400 Bad Request":         func(p *slack.UploadFileParameters) { p.FileSize = 5 },
	} {
		if _, err := attach(c, t, change); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("error %v, want %s", err, code)
		}
	}
	equal(t, "thread", texts(s.Messages(channel, root)), []string{"please", "more"})

	complete := func(id string) error {
		_, err := c.CompleteUploadExternalContext(t.Context(),
			slack.CompleteUploadExternalParameters{Files: []slack.FileSummary{{ID: id}}, Channel: channel})
		return err
	}
	want(t, "unknown", complete("F0"), "file_not_found")
	want(t, "nothing", complete(""), "file_not_found")
	u, err := c.GetUploadURLExternalContext(t.Context(),
		slack.GetUploadURLExternalParameters{FileName: "a", FileSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "before its bytes", complete(u.FileID), "file_not_found")
	post := func(to string) int {
		t.Helper()
		resp, err := http.Post(to, "application/octet-stream", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	equal(t, "bare bytes", post(u.UploadURL), 200)
	equal(t, "to nowhere", post(u.UploadURL+"0"), 404)
	if err := complete(u.FileID); err != nil {
		t.Error(err)
	}
	want(t, "twice", complete(u.FileID), "file_not_found")
	_, err = c.CompleteUploadExternalContext(t.Context(), slack.CompleteUploadExternalParameters{Channel: channel})
	want(t, "no files", err, "invalid_arguments")
	equal(t, "messages", len(s.Messages(channel, "")), 2)

	for _, form := range []url.Values{{"filename": {"a"}}, {"length": {"1"}}, {"filename": {"a"}, "length": {"0"}}} {
		form.Set("token", "xoxb-test")
		resp, err := http.PostForm(s.APIURL()+"files.getUploadURLExternal", form)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		calls := s.Calls("files.getUploadURLExternal")
		equal(t, "incomplete", calls[len(calls)-1].Error, "invalid_arguments")
	}
}
