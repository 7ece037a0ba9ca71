package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/joho/godotenv"
	"github.com/spf13/cobra"
)

// access is a front door's address and token. The two always come from the same place, so that a token is only sent to
// the server that it is for.
type access struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	saved bool   // by `enqueue login`
}

// client returns a client of the front door.
func (a access) client() (*apiClient, error) {
	c, err := newAPIClient(a.URL, a.Token)
	if err == nil {
		c.saved = a.saved
	}
	return c, err
}

// access returns how to reach the front door: by the environment, by what `enqueue login` saved, or by the .env of the
// current directory. The last comes last because the directory may be a stranger's repository.
func (t *terminal) access() (access, error) {
	own := access{URL: t.getenv("ERRAND_HTTP_ADDR"), Token: t.getenv("ERRAND_CONSOLE_TOKEN")}
	if own != (access{}) {
		return own, nil
	}
	saved, err := t.savedAccess()
	if err != nil || saved != (access{}) {
		saved.saved = true
		return saved, err
	}
	file, err := godotenv.Read(filepath.Join(t.dir, ".env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return access{}, fmt.Errorf("read .env: %w", err)
	}
	return access{
		URL: cmp.Or(file["ERRAND_HTTP_ADDR"], file["ERRAND_PUBLIC_URL"]), Token: file["ERRAND_CONSOLE_TOKEN"],
	}, nil
}

// loginFile is where `enqueue login` keeps the access, below the user's directory for configuration.
func (t *terminal) loginFile() (string, error) {
	dir := t.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := t.getenv("HOME")
		if home == "" {
			return "", errors.New("find the directory for configuration: set HOME")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "errand", "login.json"), nil
}

// savedAccess returns what `enqueue login` saved, or the zero value.
func (t *terminal) savedAccess() (a access, err error) {
	path, err := t.loginFile()
	if err != nil {
		return a, nil //nolint:nilerr // without a home there is no login
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return a, fmt.Errorf("read the saved login: %w; log in again with `enqueue login URL`", err)
	}
	return a, nil
}

// loginCommand asks for a token, tries it, and saves it for later commands.
func loginCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "login URL", Short: "Save the address and token of a front door"}
	c.RunE = func(c *cobra.Command, args []string) error {
		token, err := t.readLine(field{"Token", true})
		if err == nil && token == "" {
			err = errors.New("the token is empty")
		}
		if err != nil {
			return usageError{err}
		}
		a := access{args[0], token, true}
		client, err := a.client()
		if err != nil {
			return usageError{err}
		}
		a.URL = client.base // as it was understood
		if _, err := client.call(c.Context(), "GET /api/tasks?limit=1", nil, &struct{}{}); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		path, err := t.loginFile()
		if err != nil {
			return err
		}
		if err := saveAccess(path, a); err != nil {
			return fmt.Errorf("save login: %w", err)
		}
		printf(t.stdout, "Logged in to %s. The token is saved in %s.\n", a.URL, path)
		if used, err := t.access(); err == nil && !used.saved {
			printf(t.stderr, "enqueue: warning: ERRAND_HTTP_ADDR or ERRAND_CONSOLE_TOKEN is set, and counts instead\n")
		}
		if u, err := url.Parse(a.URL); err == nil && u.Scheme == "http" && !local(u.Hostname()) {
			printf(t.stderr, "enqueue: warning: the token is sent without encryption; use an https URL\n")
		}
		return nil
	}
	return c
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// saveAccess replaces the file, which only the user can read.
func saveAccess(path string, a access) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

// replaceFile writes a file as a whole. Only the user can read it.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// logoutCommand deletes the saved login.
func logoutCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "logout", Short: "Delete the saved address and token"}
	c.RunE = func(*cobra.Command, []string) error {
		path, err := t.loginFile()
		if err == nil {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			printf(t.stdout, "There is no saved login.\n")
			return nil
		}
		if err != nil {
			return fmt.Errorf("log out: %w", err)
		}
		printf(t.stdout, "Logged out. The token is still valid.\n")
		return nil
	}
	return c
}
