// Package send sends alerts to the targets of BACKSTOP_ALERT_URLS: chat
// services, mail, or any HTTP endpoint.
package send

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"

	"backstop/internal/alert"

	"github.com/nicholas-fedor/shoutrrr"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// target is one URL.
type target struct {
	name    string
	secrets []string // parts of the URL that must not appear in errors
	router  *router.ServiceRouter
	// untitled services send only the body; the title becomes its first line.
	untitled bool
	// turn serializes sends: some senders of the library write the title into a variable shared
	// by all messages.
	turn chan struct{}
}

// Targets parses the URLs. Errors name the position in the list and never the URL, which
// contains tokens.
func Targets(urls []string) ([]alert.Target, error) {
	all := make([]alert.Target, len(urls))
	for i, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("alert URL %d cannot be read: write it as scheme://…", i+1)
		}
		t := &target{name: name(u, raw), secrets: secrets(u), untitled: untitled(u), turn: make(chan struct{}, 1)}
		if strings.HasPrefix(u.Scheme, alert.JSONPrefix) {
			all[i] = &jsonTarget{target: t, url: strings.TrimPrefix(raw, alert.JSONPrefix)}
			continue
		}
		if t.router, err = shoutrrr.CreateSender(raw); err != nil {
			return nil, fmt.Errorf("alert URL %d (%s) cannot be used: %s", i+1, u.Scheme, t.clean(err.Error()))
		}
		t.router.SetLogger(log.New(io.Discard, "", 0)) // it logs URLs
		if all[i] = t; u.Scheme == smtp.Scheme {
			if all[i], err = newMailTarget(t, u); err != nil {
				return nil, fmt.Errorf("alert URL %d (%s) cannot be used: %s", i+1, u.Scheme, t.clean(err.Error()))
			}
		}
	}
	return all, nil
}

// name returns the scheme and a few digits of the URL's hash: it distinguishes two targets of
// one kind and reveals nothing.
func name(u *url.URL, raw string) string {
	sum := sha256.Sum256([]byte(raw))
	return u.Scheme + "-" + hex.EncodeToString(sum[:3])
}

// untitled reports whether the URL is a plain HTTP target, which has a title field only if it
// sends JSON (template=json).
func untitled(u *url.URL) bool {
	for key := range u.Query() {
		if strings.EqualFold(key, "template") {
			return false
		}
	}
	return strings.HasPrefix(u.Scheme, "generic")
}

func secrets(u *url.URL) []string {
	parts := []string{u.User.Username()}
	if password, ok := u.User.Password(); ok {
		parts = append(parts, password)
	}
	parts = append(parts, strings.Split(u.Path, "/")...)
	for _, values := range u.Query() {
		for _, v := range values { // may be several recipients
			parts = append(append(parts, v), strings.Split(v, ",")...)
		}
	}
	// Webhook targets of chat services have their token in the host.
	return append(parts, u.Host)
}

// secretLength is the minimum length of the URL parts that are removed from errors. Shorter
// parts are words such as "yes"; removing those would make errors unreadable.
const secretLength = 5

// clean removes the parts of the URL from a text.
func (t *target) clean(text string) string {
	for _, s := range t.secrets {
		if len(s) >= secretLength {
			text = strings.ReplaceAll(text, s, "•••")
			text = strings.ReplaceAll(text, url.QueryEscape(s), "•••")
			text = strings.ReplaceAll(text, url.PathEscape(s), "•••")
		}
	}
	return text
}

// Name implements alert.Target.
func (t *target) Name() string { return t.name }

var errLate = errors.New("no answer in time")

// Send implements alert.Target.
func (t *target) Send(ctx context.Context, title, body string) error {
	if t.untitled {
		body = title + "\n" + body
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return errLate
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-t.turn }()
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("the sender panicked: %v", p)
			}
		}()
		params := types.Params{}
		params.SetTitle(title)
		done <- errors.Join(t.router.Send(body, &params)...)
	}()
	select {
	case err := <-done:
		if err != nil {
			return errors.New(t.clean(err.Error()))
		}
		return nil
	case <-ctx.Done():
		return errLate
	}
}
