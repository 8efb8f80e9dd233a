package api

import (
	"errors"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// pingView is the result of a ping.
type pingView struct {
	ID             string `json:"id"`
	Endpoint       string `json:"endpoint"`
	Channel        string `json:"channel"`
	URL            string `json:"url"`
	OK             bool   `json:"ok"`
	Class          string `json:"class"`
	HTTPStatus     int    `json:"http_status"`
	TookMS         int64  `json:"took_ms"`
	ResponseHeader string `json:"response_header"`
	ResponseBody   string `json:"response_body"`
	Error          string `json:"error"`
	StartedAt      string `json:"started_at"`
}

// maxEndpointName is longer than any name that `apply` accepts: an unnamed endpoint is named by
// its URL.
const maxEndpointName = 2048

// ping pings an endpoint of a merchant or a subscription and responds with the result.
// Repeating the request pings again; a ping changes nothing.
func (s *handlers) ping(owner string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		var endpoint string
		if body := c.Request().Body(); len(body) > 0 {
			f, err := readForm(body, "endpoint")
			if err != nil {
				return err
			}
			if endpoint = f.text("endpoint", false, maxEndpointName); f.err != nil {
				return f.err
			}
		}
		out, err := s.Acts.Run(c.UserContext(), act.Call{
			Kind: notify.PingAct(owner), By: s.Actor(c), Ref: act.Ref{ID: c.Params("code"), Part: endpoint}, Reason: noReason,
		})
		if errors.Is(err, act.ErrNotFound) {
			return &web.Error{Status: fiber.StatusNotFound, Code: "not_found", Message: "there is no such " + owner}
		}
		if err != nil {
			return err
		}
		result, err := out.After(c.UserContext())
		if err != nil {
			return err
		}
		answer := result.(notify.Answer)
		a := answer.Attempt
		console.MaskAttempt(&a)
		return c.JSON(pingView{
			ID: answer.Notification, Endpoint: notify.Shown(answer.Endpoint.Name), Channel: answer.Endpoint.Channel, URL: a.URL,
			OK: a.Class == notify.OK, Class: string(a.Class), HTTPStatus: a.HTTPStatus, TookMS: a.TookUS / 1000,
			ResponseHeader: a.ResponseHeader, ResponseBody: string(a.ResponseBody), Error: a.Error, StartedAt: notify.Stamp(a.StartedAt),
		})
	}
}
