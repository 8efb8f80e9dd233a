package api

import (
	"net/http"
	"strings"

	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// notificationRoutes are what a merchant's own engineer asks about notifications.
func (s *handlers) notificationRoutes() []web.Route {
	const path = "/api/v1/notifications"
	resend := s.onAct(web.ActRoute{
		Path: path + "/:notification/resend", Kind: notify.ResendAct, Ref: s.ownNotification, Request: ownReason{}, Read: readOwnReason,
		Then: s.showNotification, Answer: oneNotificationView{},
	})
	resend.Audience, resend.Person, resend.Permission = web.ForMerchant, false, ""
	return []web.Route{
		merchants(path, s.listNotifications, notificationsQuery{}, page[notificationView]{}),
		merchants(path+"/:notification", s.getNotification, oneNotificationQuery{}, oneNotificationView{}),
		resend,
	}
}

// notificationView is one notification as its merchant sees it. Missing values are null.
type notificationView struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	OrderNo     *string `json:"order_no"`
	Channel     string  `json:"channel"`
	URL         *string `json:"url"`    // that the order names, without query and password; null = the endpoints of the settings
	Status      string  `json:"status"` // parked while the breaker is not closed
	Attempts    int64   `json:"attempts"`
	LastClass   *string `json:"last_class"`
	HTTPStatus  *int    `json:"http_status"`
	Error       *string `json:"error"`
	CreatedAt   string  `json:"created_at"`
	NextAt      *string `json:"next_at"`
	DeliveredAt *string `json:"delivered_at"`
}

func viewNotification(d console.Delivery) notificationView {
	v := notificationView{
		ID: d.PublicID, Type: d.EventType, OrderNo: orNull(d.OrderNo), Channel: d.Channel, URL: orNull(withoutQuery(d.URL)), Status: string(d.Status),
		Attempts: d.Attempts, LastClass: orNull(string(d.LastClass)), Error: orNull(d.LastError), CreatedAt: notify.Stamp(d.CreatedAt),
		NextAt: notify.StampOr(d.NextAt),
	}
	if d.Parked {
		v.Status = console.Parked
	}
	if d.HTTPStatus != 0 {
		v.HTTPStatus = &d.HTTPStatus
	}
	if d.Status == notify.Delivered {
		v.DeliveredAt = notify.StampOr(d.FinishedAt)
	}
	return v
}

// notificationsQuery filters the notifications of the calling merchant.
type notificationsQuery struct {
	OrderNo string `query:"order_no" filter:"no" doc:"The order's number: its notifications, and those of its refunds and disputes."`
	Status  string `query:"status" doc:"The notification's status; parked = it waits for the breaker."`
	Type    string `query:"type" doc:"The type of its event."`
	span
	paging
}

func (notificationsQuery) choices() map[string][]string {
	return map[string][]string{"status": console.DeliveryStates, "type": notify.Types}
}

func (s *handlers) listNotifications(c *fiber.Ctx) error {
	return listed(s, c, console.DeliveryList, s.Console.Deliveries, viewNotification)
}

// oneNotificationQuery says which delivery of a notification is meant.
type oneNotificationQuery struct {
	Channel string `query:"channel" doc:"Its channel, where it went by several: they have the same id. Without it, the newest."`
}

func (oneNotificationQuery) choices() map[string][]string {
	return map[string][]string{"channel": notify.ChannelNames}
}

// ownDelivery finds the delivery to the calling merchant of the notification in the path; channel "" =
// the newest. Errors: notify.ErrNoDelivery.
func (s *handlers) ownDelivery(c *fiber.Ctx, channel string) (*console.Notification, error) {
	n, err := s.Console.Notification(c.UserContext(), c.Params("notification"), console.Which{Channel: channel})
	if err == nil && (n.ToSubscriber || n.RecipientID != web.MerchantOf(c).ID) {
		err = notify.ErrNoDelivery
	}
	return n, err
}

func (s *handlers) getNotification(c *fiber.Ctx) error {
	return s.sendNotification(c, requestOf[oneNotificationQuery](c).Channel)
}

func (s *handlers) sendNotification(c *fiber.Ctx, channel string) error {
	n, err := s.ownDelivery(c, channel)
	if err != nil {
		return err
	}
	v := oneNotificationView{Body: n.Body, Log: make([]ownAttemptView, len(n.Attempts))}
	for i, a := range n.Attempts {
		v.Log[i] = ownAttemptView{
			Number: a.Number, StartedAt: notify.Stamp(a.StartedAt), TookMS: float64(a.TookUS) / 1000, URL: withoutQuery(a.URL),
			Class: string(a.Class), Error: orNull(a.Error), Answer: strings.ToValidUTF8(string(a.ResponseBody), "\ufffd"),
		}
		if a.HTTPStatus != 0 {
			v.Log[i].HTTPStatus, n.HTTPStatus = &n.Attempts[i].HTTPStatus, a.HTTPStatus
		}
	}
	v.notificationView = viewNotification(n.Delivery)
	return c.JSON(v)
}

// oneNotificationView is a notification with what was sent and answered.
type oneNotificationView struct {
	notificationView
	Body string           `json:"body"` // of a webhook
	Log  []ownAttemptView `json:"log"`  // oldest first
}

type ownAttemptView struct {
	Number     int64   `json:"number"`
	StartedAt  string  `json:"started_at"`
	TookMS     float64 `json:"took_ms"`
	URL        string  `json:"url"`
	Class      string  `json:"class"`
	HTTPStatus *int    `json:"http_status"` // null = there was no answer
	Error      *string `json:"error"`
	Answer     string  `json:"answer"` // the body of the answer, as far as it is kept
}

func (s *handlers) ownNotification(c *fiber.Ctx) (act.Ref, error) {
	n, err := s.ownDelivery(c, requestOf[ownReason](c).Channel)
	if err != nil {
		return act.Ref{}, err
	}
	return act.Ref{Row: n.ID, Part: n.PublicID}, nil
}

// ownReason is the body of an act of a merchant's system about what is its own.
type ownReason struct {
	mayBeEmpty
	Reason  string `json:"reason" max:"1000" doc:"Recorded in the audit, 8 characters at least; it may be left out."`
	Channel string `json:"channel" doc:"The channel, where the notification went by several; without it, the newest."`
}

func (ownReason) choices() map[string][]string { return oneNotificationQuery{}.choices() }

func readOwnReason(c *fiber.Ctx, call *act.Call) error {
	if call.Reason = requestOf[ownReason](c).Reason; call.Reason == "" {
		call.Reason = noReason
	}
	return nil
}

func (s *handlers) showNotification(c *fiber.Ctx, _ web.Acted) error {
	c.Status(http.StatusAccepted)
	return s.sendNotification(c, requestOf[ownReason](c).Channel)
}
