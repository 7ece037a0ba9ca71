package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/slack/app"
)

// setUpSlack asks for the tokens of the Slack app, which it can create, and for channels.
func (g *guide) setUpSlack(ctx context.Context) error {
	token := g.env["SLACK_BOT_TOKEN"]
	if token == "" {
		var err error
		if token, err = g.setUpApp(ctx); err != nil || token == "" {
			return err
		}
	}
	if g.env["SLACK_APP_TOKEN"] == "" && g.env["SLACK_SIGNING_SECRET"] == "" {
		if err := g.setUpEvents(ctx); err != nil {
			return err
		}
	}
	if _, chosen, err := g.settings("channels"); chosen || err != nil {
		return err
	}
	return g.chooseChannels(ctx, g.slackClient(token))
}

// setUpApp asks for the bot token and returns it; empty without Slack.
func (g *guide) setUpApp(ctx context.Context) (token string, err error) {
	manifest, err := app.Manifest(g.name, g.base)
	if err != nil {
		return "", usageError{fmt.Errorf("make manifest: %w", err)}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, manifest); err != nil {
		return "", fmt.Errorf("make manifest: %w", err)
	}
	page := "https://api.slack.com/apps?new_app=1&manifest_json=" + url.QueryEscape(compact.String())
	printText(g.stderr, "guide slack", map[string]string{"Page": page})
	err = g.ask(ctx, []field{{"Bot token, or configuration token", true}}, func(answers []string) error {
		token = answers[0]
		if strings.HasPrefix(token, "xoxe") {
			created, err := g.slackClient("").CreateManifestRawContext(ctx, manifest, token)
			if err != nil {
				return fmt.Errorf("create the Slack app: %w", err)
			}
			page := "https://api.slack.com/apps/" + created.AppId
			printText(g.stderr, "guide slack created", map[string]string{"App": page})
			return errAskOn
		}
		if token == "" {
			return nil
		}
		if _, err := g.slackClient(token).AuthTestContext(ctx); err != nil {
			return fmt.Errorf("try the bot token: %w", err)
		}
		return g.set("SLACK_BOT_TOKEN", token)
	})
	return token, err
}

// slackClient returns a client with one of Slack's tokens, at the address that the tests set.
func (g *guide) slackClient(token string, options ...slackapi.Option) *slackapi.Client {
	if address := g.getenv("SLACK_API_URL"); address != "" {
		options = append(options, slackapi.OptionAPIURL(strings.TrimRight(address, "/")+"/"))
	}
	return slackapi.New(token, append(options, slackapi.OptionHTTPClient(&http.Client{Timeout: 20 * time.Second}))...)
}

// setUpEvents asks for what lets errand receive Slack's events.
func (g *guide) setUpEvents(ctx context.Context) error {
	name, label := "SLACK_APP_TOKEN", "App-level token"
	if g.base != "" {
		name, label = "SLACK_SIGNING_SECRET", "Signing secret"
	}
	printText(g.stderr, "guide slack events", map[string]string{"URL": g.base})
	return g.ask(ctx, []field{{label, true}}, func(answers []string) error {
		secret := answers[0]
		if secret == "" {
			return errors.New("errand needs it to receive mentions")
		}
		if g.base == "" {
			api := g.slackClient("", slackapi.OptionAppLevelToken(secret))
			if _, _, err := api.StartSocketModeContext(ctx); err != nil {
				return fmt.Errorf("try the app-level token: %w", err)
			}
		}
		return g.set(name, secret)
	})
}

// maxChannels is how many channels the guide shows.
const maxChannels = 200

// chooseChannels lets the bot join public channels, and says which repository messages there are about. It writes this
// even if it is nothing, so that the channels are chosen once.
func (g *guide) chooseChannels(ctx context.Context, api *slackapi.Client) error {
	all, _, err := api.GetConversationsContext(ctx, &slackapi.GetConversationsParameters{
		ExcludeArchived: true, Limit: maxChannels, Types: []string{"public_channel"},
	})
	if err != nil {
		return fmt.Errorf("list channels: %w", err)
	}
	var names []string
	for _, c := range all {
		names = append(names, "#"+c.Name)
	}
	printText(g.stderr, "guide channels", map[string]any{"Channels": names, "Repositories": g.repositories})
	fields := []field{{"Channels", false}}
	if len(g.repositories) > 1 {
		fields = append(fields, field{"Repository of these channels", false})
	}
	routes := map[string]map[string]string{}
	err = g.ask(ctx, fields, func(answers []string) error {
		clear(routes) // of an answer that was refused
		repo := ""
		switch len(g.repositories) {
		case 0:
		case 1:
			repo = g.repositories[0]
		default:
			repo = answers[1]
		}
		if repo != "" && !slices.Contains(g.repositories, repo) {
			return fmt.Errorf("the App is not installed on %s", repo)
		}
		for name := range strings.FieldsSeq(answers[0]) {
			i := slices.Index(names, "#"+strings.TrimPrefix(name, "#"))
			if i < 0 {
				return fmt.Errorf("there is no channel %s", name)
			}
			if _, _, _, err := api.JoinConversationContext(ctx, all[i].ID); err != nil {
				return fmt.Errorf("join %s: %w", names[i], err)
			}
			if repo != "" {
				routes[all[i].ID] = map[string]string{"repository": repo}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.configure("channels", routes)
}
