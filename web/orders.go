package web

import (
	"net/http"

	"backstop/internal/access"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

func (s *Server) storyPage(c *fiber.Ctx) error {
	no, err := orderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	story, err := s.console.Story(ctx, no)
	if err != nil {
		return err
	}
	masked := !s.policy.Allows(operator(c).Role, access.ViewPersonal)
	if masked {
		story.Mask()
	}
	return s.render(c, http.StatusOK, views.Story(s.page(c), views.StoryData{
		Story: story, Masked: masked, Done: c.Query("done"),
		CanResend: s.policy.Allows(operator(c).Role, access.Resend), ResendKey: newFormKey(),
		CanNote: s.policy.Allows(operator(c).Role, access.Comment), NoteKey: newFormKey(),
	}))
}
