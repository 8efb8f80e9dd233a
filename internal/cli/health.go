// The command that checks a running server.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"backstop/internal/app"
)

const (
	// healthTime bounds the request: the server's checks take at most 1.5 s.
	healthTime = 2 * time.Second
	// maxHealth bounds the answer in bytes: it has one entry per check.
	maxHealth = 64 << 10
)

type healthCmd struct {
	URL string `help:"The server (default: the one of BACKSTOP_LISTEN, over loopback)." placeholder:"URL"`
}

// Run requests /readyz. It needs neither a shell nor another program in the image.
func (h *healthCmd) Run(ctx context.Context, g *globals, std streams) error {
	url := strings.TrimSuffix(h.URL, "/")
	if url == "" {
		c, err := g.load()
		if err != nil {
			return err
		}
		if url, err = overLoopback(c.Listen); err != nil {
			return err
		}
	}
	resp, err := readiness(ctx, url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(summary(resp))
	}
	fmt.Fprintln(std.out, summary(resp))
	return nil
}

// readiness requests /readyz of a server, without proxy and redirects. The caller closes the body.
func readiness(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: --url: %w", app.ErrUsage, err)
	}
	client := &http.Client{
		Timeout:       healthTime,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no server answers: %w", err)
	}
	return resp, nil
}

// summary returns the status, the failed checks and the warnings in one line.
func summary(resp *http.Response) string {
	var answer struct {
		Status string
		Checks []struct {
			Name, Error string
			OK          bool
		}
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil || json.Unmarshal(raw, &answer) != nil || answer.Status == "" {
		return "the answer is " + resp.Status + ": is this server Backstop?"
	}
	why := []string{}
	for _, c := range answer.Checks {
		if c.Error != "" {
			why = append(why, c.Name+": "+c.Error)
		}
	}
	return strings.TrimSuffix(answer.Status+": "+strings.Join(why, "; "), ": ")
}

// overLoopback returns the URL of a server on this machine that listens on the address. A
// server on all addresses is on loopback too.
func overLoopback(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", fmt.Errorf("%w: BACKSTOP_LISTEN has no fixed address: give --url", app.ErrUsage)
	}
	switch addr, err := netip.ParseAddr(host); {
	case host == "", err == nil && addr.IsUnspecified() && addr.Is4():
		host = "127.0.0.1"
	case err == nil && addr.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
