package send

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"backstop/internal/alert"
)

// jsonTarget is a target that is a program: it gets each message by one POST.
type jsonTarget struct {
	*target
	url string
}

// straight follows no redirects, which would send the message to another address.
var straight = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Send implements alert.Target. A body that is no alert.Payload yet becomes one.
func (t *jsonTarget) Send(ctx context.Context, title, body string) error {
	if !strings.HasPrefix(body, `{"alerts":`) {
		body = alert.Payload{Alerts: []alert.PayloadAlert{}, Title: title, Text: body}.JSON()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(body))
	if err != nil {
		return errors.New(t.clean(err.Error()))
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := straight.Do(r)
	switch {
	case err != nil && ctx.Err() != nil:
		return errLate
	case err != nil:
		return errors.New(t.clean(err.Error()))
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}
