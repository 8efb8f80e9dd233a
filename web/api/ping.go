package api

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// pingView is what a ping came to.
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

// maxEndpointName fits every name that apply takes: a plain address is its own.
const maxEndpointName = 2048

func (s *handlers) pingMerchant(c *fiber.Ctx) error {
	return s.ping(c, "merchant", s.Settings.Merchants().ByCode(c.Params("code")))
}

func (s *handlers) pingSubscription(c *fiber.Ctx) error {
	return s.ping(c, "subscription", s.Settings.Merchants().Subscriber(c.Params("code")))
}

// ping tries one address and answers with what it said. A repeat of the request
// is another ping: it changes nothing.
func (s *handlers) ping(c *fiber.Ctx, object string, m *merchant.Merchant) error {
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
	if m == nil {
		return &web.Error{Status: fiber.StatusNotFound, Code: "not_found", Message: fmt.Sprintf("there is no such %s", object)}
	}
	if m.Broken {
		return web.ErrUnreadable
	}
	ctx, cancel := web.Work()
	defer cancel()
	by, from := web.Caller(c), s.Client(c).String()
	answer, err := s.Pings.Ping(ctx, m, endpoint, func(ctx context.Context, tx db.Tx, a notify.Answer) error {
		return s.Audit.Write(ctx, tx, audit.Act{
			Actor: by, Action: object + ".ping", Object: object, ObjectID: m.Code, Remote: from,
			Params: map[string]any{"endpoint": notify.Shown(a.Endpoint.Name), "notification": a.Notification, "class": a.Attempt.Class},
		})
	})
	if errors.Is(err, notify.ErrNoEndpoint) {
		return web.InvalidField("endpoint", err.Error())
	}
	if err != nil {
		return err
	}
	a := answer.Attempt
	return c.JSON(pingView{
		ID: answer.Notification, Endpoint: notify.Shown(answer.Endpoint.Name), Channel: answer.Endpoint.Channel, URL: a.URL,
		OK: a.Class == notify.OK, Class: string(a.Class), HTTPStatus: a.HTTPStatus, TookMS: a.TookUS / 1000,
		ResponseHeader: a.ResponseHeader, ResponseBody: string(a.ResponseBody), Error: a.Error, StartedAt: notify.Stamp(a.StartedAt),
	})
}
