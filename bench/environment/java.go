package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// javaPackages are Debian's packages of JUnit and of the plugins that Maven itself names for a build.
var javaPackages = []string{
	"junit4", "libsurefire-java", "libmaven-resources-plugin-java", "libmaven-compiler-plugin-java",
	"libmaven-jar-plugin-java", "libmaven-install-plugin-java", "libmaven-deploy-plugin-java",
	"libmaven-clean-plugin-java", "libmaven-site-plugin-java",
}

// javaProject is built by Maven. The private registry serves Debian's packages as Maven's repository.
func (b *bench) javaProject(ctx context.Context, c *corp) (stranger, error) {
	needed, err := withDependencies(ctx, javaPackages)
	if err != nil {
		return stranger{}, err
	}
	root, err := b.debian(ctx, needed)
	if err != nil {
		return stranger{}, err
	}
	c.files.HandleFunc("GET /maven/{path...}", func(w http.ResponseWriter, r *http.Request) {
		found, err := filepath.Glob(filepath.Join(root, "*/usr/share/maven-repo", r.PathValue("path")))
		if err != nil || len(found) == 0 {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, found[0])
	})
	var plugins strings.Builder
	for _, name := range []string{"resources", "compiler", "surefire"} {
		plugin := "org/apache/maven/plugins/maven-" + name + "-plugin"
		version, err := newest(filepath.Join(root, "*/usr/share/maven-repo", plugin, "*"))
		if err != nil {
			return stranger{}, err
		}
		fmt.Fprintf(&plugins, "<plugin><artifactId>maven-%s-plugin</artifactId><version>%s</version></plugin>\n", name,
			version)
	}
	repository := "<id>central</id><url>https://" + c.address() + "/maven</url>"
	return stranger{
		files: map[string]string{
			".gitignore": "target/\n",
			"pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>acme</groupId><artifactId>invoice</artifactId><version>1.0.0</version>
<properties><maven.compiler.release>17</maven.compiler.release><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<repositories><repository>` + repository + `</repository></repositories>
<pluginRepositories><pluginRepository>` + repository + `</pluginRepository></pluginRepositories>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies>
<build><plugins>
` + plugins.String() + `</plugins></build>
</project>
`,
			"src/main/java/acme/Invoice.java": "package acme;\n\npublic final class Invoice {\n" +
				"  public static int total(int... lines) {\n" +
				"    return java.util.stream.IntStream.of(lines).sum();\n  }\n}\n",
			"src/test/java/acme/InvoiceTest.java": "package acme;\n\n" +
				"import static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\n" +
				"public class InvoiceTest {\n" +
				"  @Test public void addsUp() { assertEquals(29, Invoice.total(28, 1)); }\n" +
				"  @Test public void nothing() { assertEquals(0, Invoice.total()); }\n}\n",
		},
		test: "mvn -B -o test", passed: regexp.MustCompile(`Tests run: 2, Failures: 0, Errors: 0, Skipped: 0`),
		login: true,
	}, nil
}

// newest returns the name of the directory that comes last.
func newest(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("find %s: %w", pattern, os.ErrNotExist)
	}
	return filepath.Base(found[len(found)-1]), nil
}

// withDependencies adds the libraries for Java that Debian's packages need, with what they need.
func withDependencies(ctx context.Context, packages []string) (all []string, err error) {
	args := append([]string{"install", "--simulate", "--no-install-recommends", "-o", "Dir::State::status=/dev/null"},
		packages...)
	out, err := exec.CommandContext(ctx, "apt-get", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("find Debian's packages: %w", err)
	}
	for _, m := range regexp.MustCompile(`(?m)^Inst (\S+-java|junit\S*|velocity|ant) `).FindAllStringSubmatch(string(out), -1) {
		all = append(all, m[1])
	}
	return all, nil
}
