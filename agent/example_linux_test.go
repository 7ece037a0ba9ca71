package agent_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// quiet is a Host that allows what the profile allows, and has nothing to add.
type quiet struct{}

func (quiet) Event(agent.Event) {}

func (quiet) Permit(context.Context, agent.ToolRequest) agent.Decision { return agent.Decision{} }

func (quiet) Next(ctx context.Context) (agent.Message, bool) {
	<-ctx.Done()
	return agent.Message{}, false
}

func (quiet) Idle(context.Context) (agent.Message, bool) { return agent.Message{}, false }

// A run of the real CLI, with a tool of this process. The model is a server on loopback here, so that the example needs
// no account; leave out BaseURL for the real one.
func Example() {
	model := modelfake.New()
	defer model.Close()
	model.Answer("",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "mcp__errand__lookup", Input: map[string]string{"name": "pelican"},
		}}},
		modelfake.Turn{Text: "Pelicans weigh up to 15 kg."})

	dir, err := os.MkdirTemp("", "ex") // short: the CLI makes sockets below it
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	runner, err := agent.New(agent.Config{
		LogDir: dir, BaseURL: model.URL(), Credential: agent.Credential{APIKey: "sk-ant-example"},
		Redactor: agent.NewRedactor("sk-ant-example"),
	})
	if err != nil {
		log.Fatal(err)
	}

	type question struct {
		Name string `json:"name" jsonschema:"of the bird"`
	}
	lookup := agent.NewTool("lookup", "Look a bird up.", func(_ context.Context, q question) (string, error) {
		fmt.Println("looked up", q.Name)
		return "up to 15 kg", nil
	})
	result, err := runner.Run(context.Background(), agent.Spec{
		ID: "example", Dir: dir, Profile: agent.Read, Tools: []agent.Tool{lookup},
		Prompt: agent.Message{Text: "How heavy is a pelican?"},
	}, quiet{})
	if err != nil {
		log.Fatal(err) // nothing ran
	}
	fmt.Println(result.Outcome, "in", result.Turns, "turns:", result.Text)
	// Output:
	// looked up pelican
	// done in 2 turns: Pelicans weigh up to 15 kg.
}
