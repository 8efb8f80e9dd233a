// The command that asks a running server how it is.

package main

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
	// healthTime bounds the question: checks of the server take 2 s at most.
	healthTime = 3 * time.Second
	// maxHealth bounds the answer: it is a line for each check.
	maxHealth = 64 << 10
)

type healthCmd struct {
	URL string `help:"The server (default: the one of BACKSTOP_LISTEN, over loopback)." placeholder:"URL"`
}

// Run asks /readyz. It needs neither a shell nor another program, so that an image
// holds none for it.
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
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("%w: --url: %w", app.ErrUsage, err)
	}
	// Neither a proxy nor a redirect stands between the program and itself.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(ask)
	if err != nil {
		return fmt.Errorf("no server answers: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(said(resp))
	}
	fmt.Fprintln(std.out, said(resp))
	return nil
}

// said is whether it is ready, and which checks do not hold, in one line.
func said(resp *http.Response) string {
	var answer struct {
		Status string
		Checks []struct {
			Name, Error, Warning string
			OK                   bool
		}
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil || json.Unmarshal(raw, &answer) != nil || answer.Status == "" {
		return "it answers " + resp.Status + ": is it backstop?"
	}
	why := []string{}
	for _, c := range answer.Checks {
		if text := c.Error + c.Warning; text != "" {
			why = append(why, c.Name+": "+text)
		}
	}
	return strings.TrimSuffix(answer.Status+": "+strings.Join(why, "; "), ": ")
}

// overLoopback is the address at which this machine reaches a server that listens on
// listen: one on all addresses is on loopback too.
func overLoopback(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", fmt.Errorf("%w: BACKSTOP_LISTEN does not say where the server is: give --url", app.ErrUsage)
	}
	switch addr, err := netip.ParseAddr(host); {
	case host == "", err == nil && addr.IsUnspecified() && addr.Is4():
		host = "127.0.0.1"
	case err == nil && addr.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
