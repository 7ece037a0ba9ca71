package session

// The formats of lines, with the keys in the CLI's order except the last two, session_id and uuid, which every line
// gets. Lists that the runner does not read are shorter than the CLI's.
const (
	id = "5e551011-0000-4000-8000-00000000be9c"

	initLine = `{"type":"system","subtype":"init","cwd":"/srv/clone","tools":["Task","Bash","Edit","Glob","Grep","NotebookEdit","Read",` +
		`"Skill","TaskStop","ToolSearch","WebFetch","WebSearch","Write"],"mcp_servers":[],"model":"claude-opus-5-5",` +
		`"permissionMode":"default","slash_commands":["compact","context","init","review","security-review","usage"],` +
		`"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.332","output_style":"default",` +
		`"agents":["Explore","general-purpose","Plan"],"skills":[],"plugins":[],"capabilities":["interrupt_receipt_v1","msg_lifecycle_v1"],` +
		`"original_cwd":"/srv/clone","additional_directories":[]`
	stateLine      = `{"type":"system","subtype":"session_state_changed","state":"%s"`
	requestingLine = `{"type":"system","subtype":"status","status":"requesting"`

	messageStartLine = `{"type":"stream_event","event":{"message":{"content":[],"id":"%s","model":"claude-opus-5-5","role":"assistant",` +
		`"stop_reason":null,"stop_sequence":null,"type":"message","usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":0,` +
		`"input_tokens":%d,"output_tokens":1,"service_tier":"standard"}},"type":"message_start"},"parent_tool_use_id":null,"ttft_ms":812,` +
		`"api_message_id":"%s"`
	blockStartLine = `{"type":"stream_event","event":{"content_block":%s,"index":%d,"type":"content_block_start"},` +
		`"parent_tool_use_id":null,"api_message_id":"%s"`
	deltaLine = `{"type":"stream_event","event":{"delta":{"%s":%s,"type":"%s"},"index":%d,"type":"content_block_delta"},` +
		`"parent_tool_use_id":null,"api_message_id":"%s"`
	blockStopLine    = `{"type":"stream_event","event":{"index":%d,"type":"content_block_stop"},"parent_tool_use_id":null,"api_message_id":"%s"`
	messageDeltaLine = `{"type":"stream_event","event":{"delta":{"stop_reason":"%s","stop_sequence":null},"type":"message_delta",` +
		`"usage":{"output_tokens":%d}},"parent_tool_use_id":null,"api_message_id":"%s"`
	messageStopLine = `{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":null,"api_message_id":"%s"`

	assistantLine = `{"type":"assistant","message":{"content":[%s],"id":"%s","model":"claude-opus-5-5","role":"assistant",` +
		`"stop_reason":null,"stop_sequence":null,"type":"message","usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":0,` +
		`"input_tokens":100,"output_tokens":1,"service_tier":"standard"},"context_management":null},"parent_tool_use_id":null,` +
		`"timestamp":"2026-11-20T21:28:23.219Z","request_id":"req_%024d"`
	userLine = `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"%s","type":"tool_result","content":%s,"is_error":false}]},` +
		`"parent_tool_use_id":null,"timestamp":"2026-11-20T21:28:24.807Z","tool_use_result":%s,` +
		`"tool_result_meta":[{"id":"%s","permission_decision":{"decision":"accept","source":"config","reason_type":"mode"}}]`

	taskStartedLine = `{"type":"system","subtype":"task_started","task_id":"b%s","tool_use_id":"%s","description":"run it",` +
		`"is_backgrounded":false,"task_type":"local_bash"`
	taskEndedLine = `{"type":"system","subtype":"task_notification","task_id":"b%s","tool_use_id":"%s","status":"completed",` +
		`"output_file":"","summary":"run it"`
	progressLine = `{"type":"tool_progress","tool_use_id":"%s-heartbeat-0","tool_name":"Bash","parent_tool_use_id":"%s",` +
		`"elapsed_time_seconds":30,"heartbeat":true`

	// Its type is not the first key, so a reader must not rely on the beginning of a line.
	resultLine = `{"duration_api_ms":812000,"stop_reason":"end_turn","total_cost_usd":12.5,"usage":{"input_tokens":200,` +
		`"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":40,"service_tier":"standard"},` +
		`"modelUsage":{"claude-opus-5-5":{"inputTokens":200000,"outputTokens":40000,"cacheReadInputTokens":0,` +
		`"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":12.5,"contextWindow":1000000,"maxOutputTokens":128000}},` +
		`"permission_denials":[],"terminal_reason":"completed","is_error":false,"num_turns":1,"subtype":"success",` +
		`"api_error_status":null,"result":%s,"type":"result","duration_ms":900000,"queued_turn_count":0,"result_index":0`
)
