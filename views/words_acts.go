package views

// Acts of people.
var (
	tAudit        = word{"审计日志", "Audit"}
	tActor        = word{"操作人", "Who"}
	tAct          = word{"操作", "What"}
	tObject       = word{"对象", "On what"}
	tActReason    = word{"原因", "Reason"}
	tReasonAudit  = word{"原因（写入审计，对同事可见）", "Reason (kept in the audit, colleagues can read it)"}
	tReasonRule   = word{"8 到 1000 个字符", "8 to 1000 characters"}
	tResend       = word{"重发通知", "Send again"}
	tResendHow    = word{"不会再次扣款。商户可能收到重复的通知，编号不变，商户据此识别。", "No money moves. The merchant may hear it twice, under the same id by which it knows a repeat."}
	tResendGo     = word{"重发 1 笔", "Send 1 again"}
	tNote         = word{"写备注", "Add a note"}
	tNoteText     = word{"备注（写入审计，对同事可见）", "Note (kept in the audit, colleagues can read it)"}
	tCancel       = word{"取消", "Cancel"}
	tRecordedAs   = word{"审计记录：%s", "Recorded as %s"}
	tDoneResend   = word{"已安排重发，通常几秒内送出。", "It goes out again within seconds."}
	tDoneNote     = word{"备注已保存。", "The note is kept."}
	tActResend    = word{"重发通知", "sent a notification again"}
	tActNote      = word{"备注", "wrote a note"}
	tActSignIn    = word{"登录", "signed in"}
	tActPassword  = word{"修改了密码", "changed the password"}
	tActUnmask    = word{"查看了个人信息", "looked at personal data"}
	tActExport    = word{"导出了证据", "exported the evidence"}
	tUnmask       = word{"显示个人信息", "Show personal data"}
	tUnmaskHow    = word{"只在这一次的页面里显示 60 秒，您的名字和原因会写入审计。", "It is shown in this one answer for 60 s; your name and the reason are kept in the audit."}
	tUnmaskGo     = word{"显示 60 秒", "Show for 60 s"}
	tDoneUnmask   = word{"个人信息已经显示过，现在又遮盖了。要再看，请再写一次原因。", "The personal data was shown and is masked again. To see it once more, give a reason once more."}
	tShownUntil   = word{"个人信息显示到 %s，之后本页自动遮盖。", "Personal data is shown until %s; then this page masks it by itself."}
	tActApply     = word{"应用了配置文件", "applied a file"}
	tActImport    = word{"接管了订单", "took over orders"}
	tActReseal    = word{"用当前主密钥重新加密了密钥", "sealed the secrets again"}
	tActTokenAdd  = word{"新建了令牌", "made a token"}
	tActTokenEnd  = word{"作废了令牌", "ended a token"}
	tActOpAdd     = word{"新建了操作员", "added an operator"}
	tActOpDisable = word{"停用了操作员", "disabled an operator"}
	tActOpReset   = word{"重置了密码", "gave a new one-time password"}
	tObjException = word{"异常", "Exception"}
	tObjPlan      = word{"批量重发", "Resend of many"}
	tObjAlert     = word{"告警测试", "Test of alerts"}
	tObjRule      = word{"告警规则", "Rule of alerts"}
	tObjOperator  = word{"操作员", "Operator"}
	tObjToken     = word{"令牌", "Token"}
	tObjFile      = word{"文件", "File"}
	tObjKey       = word{"主密钥", "Master key"}
	tPhasePeople  = word{"人工", "People"}
	tAuditNone    = word{"还没有人做过什么", "Nobody did anything yet"}
	tAuditNoneHow = word{"登录、重发、备注和管理命令都会记在这里。", "Sign-ins, resends, notes and what commands change are kept here."}
	tAuditCheck   = word{"校验链条", "Check the chain"}
	tAuditWhole   = word{"链条完整：%s 条记录，没有被改过或删过。", "The chain is whole: %s rows, none changed or taken out."}
	tAuditBroken  = word{"链条在第 %s 条断开：这条或它前面的记录被改过或删过。", "The chain breaks at row %s: it, or one before it, was changed or taken out."}
	tRemoteAddr   = word{"地址", "Address"}
	tNumber       = word{"编号", "No."}
)
