package web

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/evidence"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

// evidence hands out one order's whole story, signed: as a page to be printed, or
// with ?format=json as a file. Each export stands in the audit with the hash of
// what left the house.
func (s *Server) evidence(c *fiber.Ctx) error {
	no, err := orderNo(c)
	if err != nil {
		return err
	}
	format := c.Query("format", "html")
	if format != "html" && format != "json" {
		return invalidField("format", "must be html or json")
	}
	// Another site's link must not write into our audit in this person's name.
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return errForeign
	}
	ctx, cancel := work()
	defer cancel()
	story, err := s.console.WholeStory(ctx, no)
	if err != nil {
		return err
	}
	page := s.page(c)
	by := "operator:" + operator(c).Name
	e := story.Evidence(page.Zone)
	e.ExportedAt, e.ExportedBy, e.Product = console.Moment(s.o.DB.Now(), page.Zone), by, "Backstop "+s.o.Version
	if e.AuditRows, e.AuditHead, err = audit.Head(ctx, s.o.DB.Read); err != nil {
		return err
	}
	file, err := evidence.Sign(e, s.o.Keys) // megabytes: not while a transaction holds the writer
	if err != nil {
		return err
	}
	err = s.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		return s.o.Audit.Write(ctx, tx, audit.Act{
			Actor: by, Action: "order.evidence", Object: "order", ObjectID: no, Remote: s.client(c).String(),
			Params: map[string]any{"format": format, "sha256": file.SHA256, "key_id": file.Signature.KeyID},
		})
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
		return s.sendPacked(c, text, nil)
	}
	data := s.storyData(c, story, "")
	return s.render(c, http.StatusOK, views.Evidence(page, views.EvidenceData{StoryData: data, Evidence: e, File: file, Text: string(text)}))
}

// fileName keeps of an order number what every system takes as a file's name.
func fileName(no string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, no)
}

// evidenceKeys tells everybody by which keys our evidence is known.
func (s *Server) evidenceKeys(c *fiber.Ctx) error {
	type key struct {
		ID        string `json:"key_id"`
		Algorithm string `json:"algorithm"`
		Public    string `json:"public_key"`
	}
	keys := []key{}
	for _, k := range s.o.Keys.SigningKeys() {
		keys = append(keys, key{k.ID, "Ed25519", base64.StdEncoding.EncodeToString(k.Public)})
	}
	return c.JSON(map[string]any{"keys": keys})
}
