package wording

import (
	"backstop/internal/access"
	"backstop/internal/base/text"
)

// RoleDoes says what each role is for.
var RoleDoes = map[string]text.Text{
	access.Viewer:   {ZH: "查看交易和统计，个人信息打码", EN: "Reads trade and figures, with personal data masked"},
	access.Support:  {ZH: "另可逐笔补发通知、查单、备注", EN: "Also resends one notification, queries suppliers, writes notes"},
	access.Ops:      {ZH: "另可管理队列、熔断、告警，批量补单", EN: "Also runs queues, breakers and alerts, and resends in bulk"},
	access.Finance:  {ZH: "提议资金操作，复核主管的提议，导出证据", EN: "Proposes what moves money, approves what a lead proposed, exports evidence"},
	access.Lead:     {ZH: "复核资金操作和配置，查看审计", EN: "Approves what moves money and settings, reads the audit"},
	access.Admin:    {ZH: "管理人员、提议配置、地址；不能动资金", EN: "Manages people, proposes settings, endpoints; moves no money"},
	access.Merchant: {ZH: "商户自己的人（须限定商户）：查看订单和通知、补发、测试地址、轮换签名密钥", EN: "A merchant's own people, limited to it: sees orders and notifications, resends, pings, rotates the signing secret"},
	access.Auditor:  {ZH: "查看全部，含原文和审计；不能操作", EN: "Reads everything, unmasked, and the audit; does nothing"},
}

// Permissions are what roles may do.
var Permissions = map[access.Permission]text.Text{
	access.UseAccount:           {ZH: "自己的设置和密码", EN: "Own settings and password"},
	access.ViewOverview:         {ZH: "查看概览、分析和报表", EN: "See the overview, analytics and reports"},
	access.ViewOrders:           {ZH: "查看订单、退款、出款、争议和账户", EN: "See orders, refunds, payouts, disputes and accounts"},
	access.ViewCallbacks:        {ZH: "查看回调和渠道", EN: "See callbacks and suppliers"},
	access.ViewNotifications:    {ZH: "查看通知和商户", EN: "See notifications and merchants"},
	access.ViewExceptions:       {ZH: "查看异常和复核", EN: "See exceptions and approvals"},
	access.ViewPersonal:         {ZH: "查看未打码的个人信息", EN: "See personal data unmasked"},
	access.InspectQueues:        {ZH: "查看队列", EN: "See queues"},
	access.ControlQueues:        {ZH: "暂停和恢复队列", EN: "Pause and resume queues"},
	access.Resend:               {ZH: "补发一条通知", EN: "Resend a notification"},
	access.Comment:              {ZH: "写备注", EN: "Write notes"},
	access.ShareViews:           {ZH: "共享视图", EN: "Share views"},
	access.QueryOrders:          {ZH: "查单", EN: "Query suppliers about orders"},
	access.ViewAudit:            {ZH: "查看审计", EN: "See the audit"},
	access.ViewRoleAudit:        {ZH: "查看本角色的审计", EN: "See the audit of one's role"},
	access.ControlBreakers:      {ZH: "熔断和解除熔断", EN: "Open and close breakers"},
	access.ControlAddresses:     {ZH: "启用商户的通知地址", EN: "Enable merchants' endpoints"},
	access.PingEndpoints:        {ZH: "测试商户的通知地址", EN: "Ping merchants' endpoints"},
	access.RotateSecret:         {ZH: "轮换自己商户的签名密钥", EN: "Rotate the signing secret of one's own merchant"},
	access.MakeTestKeys:         {ZH: "生成商户的测试模式密钥", EN: "Make merchants' keys of test mode"},
	access.ViewAlerts:           {ZH: "查看告警", EN: "See alerts"},
	access.TestAlerts:           {ZH: "发送测试告警", EN: "Send test alerts"},
	access.HandleAlerts:         {ZH: "处理告警事件", EN: "Handle incidents"},
	access.ConfigureAlerts:      {ZH: "修改告警规则", EN: "Change alert rules"},
	access.ExportEvidence:       {ZH: "导出订单证据", EN: "Export evidence"},
	access.ResendMany:           {ZH: "批量补单", EN: "Resend in bulk"},
	access.AssignExceptions:     {ZH: "指派异常", EN: "Assign exceptions"},
	access.IgnoreExceptions:     {ZH: "忽略不涉及资金的异常", EN: "Ignore exceptions without money"},
	access.ViewCompensations:    {ZH: "查看补偿任务和批次", EN: "See compensations and batches"},
	access.RunCompensations:     {ZH: "立即执行补偿任务", EN: "Run a compensation now"},
	access.RedriveCompensations: {ZH: "批量重新执行补偿任务", EN: "Run compensations again in bulk"},
	access.CancelCompensations:  {ZH: "取消补偿任务", EN: "Cancel compensations"},
	access.ProposeMoney:         {ZH: "提议资金操作", EN: "Propose what moves money"},
	access.ApproveMoney:         {ZH: "复核资金操作", EN: "Approve what moves money"},
	access.ProposeSettings:      {ZH: "提议配置变更", EN: "Propose changes of settings"},
	access.ApproveSettings:      {ZH: "复核配置变更", EN: "Approve changes of settings"},
	access.ProposeBatches:       {ZH: "做批次计划", EN: "Plan batches"},
	access.NoteExceptions:       {ZH: "给异常写备注", EN: "Write notes on exceptions"},
	access.ViewSweeps:           {ZH: "查看扫单", EN: "See sweeps"},
	access.RunSweeps:            {ZH: "立即扫单", EN: "Run a sweep now"},
	access.ManageOperators:      {ZH: "管理人员", EN: "Manage people"},
}
