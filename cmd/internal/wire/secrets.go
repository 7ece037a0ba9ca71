package wire

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/config"
)

// repositorySecrets returns the secrets of repositories, by name in lower case: those of set-ups, or only those that the agent
// gets too.
func repositorySecrets(c config.Config, agent bool) map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, repository := range c.Routing.Repositories {
		values := map[string]string{}
		for variable, s := range repository.Secrets {
			if value := s.Value.Reveal(); value != "" && (!agent || s.Expose == config.ExposeAgent) {
				values[variable] = value
			}
		}
		all[strings.ToLower(name)] = values
	}
	return all
}

// readSecrets reads the secrets of repositories. A program that runs no tasks reads what it can, for its redactor.
func readSecrets(c config.Config, getenv func(string) string, worker bool) (problems config.Problems) {
	run := func(command string) ([]byte, error) { return config.RunSecretCommand(context.Background(), command) }
	if !worker {
		run = nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Repositories)) {
		repository, where := c.Routing.Repositories[name], c.Paths.File+": repositories."+name+".secrets"
		if err := repository.ReadSecrets(getenv, os.ReadFile, run); err != nil && worker {
			problems = append(problems, config.Problem{Where: where, What: "cannot be read: " + err.Error(), Remedy: "correct them, or set what they name"})
		}
		for variable, s := range repository.Secrets {
			if worker && s.Expose == config.ExposeAgent && c.Worker.Sandbox == config.SandboxNone {
				problems = append(problems, config.Problem{
					Where: where + "." + variable, What: "is exposed to the agent without a sandbox: the processes of all other runs could read it",
					Remedy: "set ERRAND_SANDBOX=bwrap, or remove expose",
				})
			}
		}
	}
	return problems
}
