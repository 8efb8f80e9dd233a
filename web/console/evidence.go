package console

import (
	"net/http"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/console"
	"backstop/internal/evidence"
	"backstop/views/orders"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// evidence exports one order's full history, signed: as a page for printing or, with
// ?format=json, as a file. The audit records each export with the hash of its content.
func (s *handlers) evidence(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	format := c.Query("format", "html")
	if format != "html" && format != "json" {
		return web.InvalidField("format", "must be html or json")
	}
	// Another site's link must not write into the audit in the operator's name.
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return web.ErrForeign
	}
	ctx := c.UserContext()
	story, err := s.Console.WholeStory(ctx, no)
	if err != nil {
		return err
	}
	page := s.Page(c)
	by := "operator:" + web.Operator(c).Name
	e := story.Evidence(page.Zone, s.Texts)
	e.ExportedAt, e.ExportedBy, e.Product = console.Moment(s.DB.Now(), page.Zone), by, "Backstop "+s.Version
	if e.AuditRows, e.AuditHead, err = audit.Head(ctx, s.DB.Read); err != nil {
		return err
	}
	file, err := evidence.Sign(e, s.Keys) // megabytes: not while a transaction blocks the writer
	if err != nil {
		return err
	}
	err = s.keepAct(c, audit.Act{
		Actor: by, Action: "order.evidence", Object: "order", ObjectID: no,
		Params: map[string]any{"format": format, "sha256": file.SHA256, "key_id": file.Signature.KeyID},
	})
	if err != nil {
		return err
	}
	text, err := file.Bytes()
	if err != nil {
		return err
	}
	if format == "json" {
		c.Set(fiber.HeaderContentType, "application/json; charset=utf-8")
		c.Set(fiber.HeaderContentDisposition, `attachment; filename="evidence-`+fileName(no)+`.json"`)
		return web.SendPacked(c, text, nil)
	}
	return s.Render(c, http.StatusOK, orders.Evidence(page, orders.EvidenceData{
		StoryData: s.storyData(c, story, ""), Evidence: e, File: file, Text: string(text),
	}))
}

// fileName keeps the characters of an order number that are valid in file names everywhere.
func fileName(no string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, no)
}
