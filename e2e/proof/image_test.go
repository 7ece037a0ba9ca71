package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/opencontainers/go-digest"
)

// BuildKit itself understands the Dockerfile, and all its rules, with the experimental ones, find nothing in it.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	for _, finding := range lintDockerfile(t, read(t, "Dockerfile")) {
		t.Error(finding)
	}
}

// A mistake in the Dockerfile is found by the rule for it.
func TestDockerfileMutations(t *testing.T) {
	t.Parallel()
	text := read(t, "Dockerfile")
	for _, m := range []struct{ rule, old, mistake string }{
		{"ConsistentInstructionCasing", "USER ", "user "},
		{"DuplicateStageName", "FROM ${RUNTIME_IMAGE}", "FROM ${RUNTIME_IMAGE} AS build"},
		{"ExposeInvalidFormat", "EXPOSE 8080", "EXPOSE 127.0.0.1:8080:8080"},
		{"ExposeProtoCasing", "EXPOSE 8080", "EXPOSE 8080/TCP"},
		{"FromAsCasing", " AS build", " as build"},
		{"InvalidDefaultArgInFrom", "ARG RUNTIME_IMAGE=node:24-bookworm-slim", "ARG RUNTIME_IMAGE"},
		{"FromPlatformFlagConstDisallowed", "FROM ${GO_IMAGE}", "FROM --platform=linux/amd64 ${GO_IMAGE}"},
		{"InvalidDefinitionDescription", "# VERSION is", "# The version is"},
		{"JSONArgsRecommended", `CMD ["worker"]`, "CMD worker"},
		{"LegacyKeyValueFormat", "ARG VERSION=unknown", "ARG VERSION=unknown\nENV GOOS linux"},
		{"MaintainerDeprecated", "USER ", "MAINTAINER Ann\nUSER "},
		{"MultipleInstructionsDisallowed", `CMD ["worker"]`, "CMD [\"enqueue\"]\nCMD [\"worker\"]"},
		{"NoEmptyContinuation", " && rm -rf /root/.npm", "\n && rm -rf /root/.npm"},
		{"RedundantTargetPlatform", "FROM ${RUNTIME_IMAGE}", "FROM --platform=$TARGETPLATFORM ${RUNTIME_IMAGE}"},
		{"ReservedStageName", "FROM ${RUNTIME_IMAGE}", "FROM ${RUNTIME_IMAGE} AS scratch"},
		{"SecretsUsedInArgOrEnv", "ARG VERSION=unknown", "ARG GITHUB_TOKEN"},
		{"StageNameCasing", " AS build", " AS Build"},
		{"UndefinedArgInFrom", "FROM ${RUNTIME_IMAGE}", "FROM ${RUNTIME_IMAGES}"},
		{"UndefinedVar", ":$PATH", ":$PAHT"},
		{"WorkdirRelativePath", "WORKDIR /opt/errand", "WORKDIR opt/errand"},
		{notValid, "HEALTHCHECK ", "HEALTHCHECKS "},
	} {
		wrong := strings.Replace(text, m.old, m.mistake, 1)
		findings := lintDockerfile(t, wrong)
		if wrong == text || !slices.ContainsFunc(findings, func(one string) bool {
			return strings.HasPrefix(one, m.rule+": ")
		}) {
			t.Errorf("%q instead of %q: findings %q, want %s", m.mistake, m.old, findings, m.rule)
		}
	}
}

// notValid is the name of no rule of BuildKit: without a valid Dockerfile there is no image.
const notValid = "not valid"

// lintDockerfile returns what BuildKit finds in the text of a Dockerfile, each with its rule. There is no build and no
// context, so CopyIgnoredFile, about .dockerignore, finds nothing: TestImageContext is about that.
func lintDockerfile(t *testing.T, text string) (findings []string) {
	t.Helper()
	results, err := dockerfile2llb.DockerfileLint(t.Context(), []byte("# check=experimental=all\n"+text),
		dockerfile2llb.ConvertOpt{
			SourceMap: &llb.SourceMap{Definition: &llb.Definition{}}, MetaResolver: base{},
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range results.Warnings {
		findings = append(findings, fmt.Sprintf("%s: line %d: %s", w.RuleName,
			w.Location.Ranges[0].Start.Line-1, w.Detail))
	}
	if results.Error != nil {
		findings = append(findings, notValid+": "+results.Error.Message)
	}
	return findings
}

// base stands for the images that ours is built on, which no test downloads.
type base struct{}

func (base) ResolveImageConfig(_ context.Context, ref string,
	_ sourceresolver.Opt,
) (string, digest.Digest, []byte, error) {
	return ref, "", []byte(`{"config":{"Env":["PATH=/usr/bin"]}}`), nil
}
