package api

import (
	"context"
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

// pingRequest is the body of a ping. An endpoint without a name is named by its URL.
type pingRequest struct {
	Endpoint string `json:"endpoint" max:"2048"`
}

// ping is the route that pings an endpoint of a merchant or a subscription and responds with the
// result. Repeating the request pings again; a ping changes nothing.
func (s *handlers) ping(path, owner string) web.Route {
	return s.onAct(web.ActRoute{
		Path: path, Kind: notify.PingAct(owner), Request: pingRequest{}, Then: showPing, Answer: pingView{},
		Read: func(c *fiber.Ctx, call *act.Call) error {
			call.Ref, call.Reason = act.Ref{ID: c.Params("code"), Part: requestOf[pingRequest](c).Endpoint}, noReason
			return nil
		},
		Run: func(ctx context.Context, call act.Call) (act.Outcome, error) {
			out, err := s.Acts.Run(ctx, call)
			if errors.Is(err, act.ErrNotFound) {
				err = &web.Error{Status: fiber.StatusNotFound, Code: "not_found", Message: "there is no such " + owner}
			}
			return out, err
		},
	})
}

func showPing(c *fiber.Ctx, done web.Acted) error {
	answer := done.Result.(notify.Answer)
	a := answer.Attempt
	console.MaskAttempt(&a)
	return c.JSON(pingView{
		ID: answer.Notification, Endpoint: notify.Shown(answer.Endpoint.Name), Channel: answer.Endpoint.Channel, URL: a.URL,
		OK: a.Class == notify.OK, Class: string(a.Class), HTTPStatus: a.HTTPStatus, TookMS: a.TookUS / 1000,
		ResponseHeader: a.ResponseHeader, ResponseBody: string(a.ResponseBody), Error: a.Error, StartedAt: notify.Stamp(a.StartedAt),
	})
}
