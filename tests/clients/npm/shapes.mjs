// Holds what a server said against two published sets of schemas: those that ext-tasks has of its extension to 2026-07-28,
// and those of the SDK whose newest revision was 2025-06-18.
//
// It is given a file with one JSON object a line: the revision that was spoken, the kind of message, the method that it
// belongs to, and the message. It prints one line for each that it can judge, with the faults that it has.

import { readFileSync } from 'node:fs';

import * as tasks from '@modelcontextprotocol/ext-tasks/core/v2';
import * as sdk from 'sdk-2025-06-18/types.js';

const RESULTS = {
  'initialize': sdk.InitializeResultSchema,
  'ping': sdk.EmptyResultSchema,
  'logging/setLevel': sdk.EmptyResultSchema,
  'tools/list': sdk.ListToolsResultSchema,
  'tools/call': sdk.CallToolResultSchema,
  'resources/list': sdk.ListResourcesResultSchema,
  'resources/templates/list': sdk.ListResourceTemplatesResultSchema,
  'resources/read': sdk.ReadResourceResultSchema,
  'resources/subscribe': sdk.EmptyResultSchema,
  'resources/unsubscribe': sdk.EmptyResultSchema,
  'prompts/list': sdk.ListPromptsResultSchema,
  'prompts/get': sdk.GetPromptResultSchema,
  'completion/complete': sdk.CompleteResultSchema,
};

const OF_TASKS = {
  'tasks/get': tasks.GetTaskResultV2Schema,
  'tasks/update': tasks.UpdateTaskResultV2Schema,
  'tasks/cancel': tasks.CancelTaskResultV2Schema,
};

// The schemas that a message must fit, each with the part that is held against it; none if there is nothing to hold it
// against.
function targets({ revision, kind, method, message }) {
  const { result, params } = message;
  if (revision === '2025-06-18') {
    switch (kind) {
      case 'result': return [[sdk.JSONRPCResponseSchema, message], [RESULTS[method], result]];
      case 'error': return [[sdk.JSONRPCErrorSchema, message]];
      case 'request': return [[sdk.JSONRPCRequestSchema, message], [sdk.ServerRequestSchema, { method, params }]];
      default: return [[sdk.JSONRPCNotificationSchema, message], [sdk.ServerNotificationSchema, { method, params }]];
    }
  }
  if (revision !== '2026-07-28') return [];
  if (method === 'notifications/tasks') return [[tasks.TaskStatusNotificationV2Schema, message]];
  if (method === 'notifications/subscriptions/acknowledged') {
    return [[tasks.TaskSubscriptionAcknowledgedNotificationsV2Schema, params.notifications]];
  }
  if (kind === 'error') return [[tasks.ErrorV2Schema, message.error]];
  if (kind !== 'result') return [];
  if (method in OF_TASKS) return [[OF_TASKS[method], result]];
  if (method === 'server/discover') return [[tasks.ServerTaskCapabilityEnvelopeV2Schema, result.capabilities]];
  if (method === 'tools/list') return result.tools.map((tool) => [tasks.ToolV2Schema, tool]);
  if (method !== 'tools/call') return [];
  return [[result.resultType === 'task' ? tasks.CreateTaskResultV2Schema : tasks.CallToolResultV2Schema, result]];
}

const lines = readFileSync(process.argv.at(-1), 'utf8').trimEnd().split('\n');
for (const [number, line] of lines.entries()) {
  const held = targets(JSON.parse(line));
  if (held.length === 0) continue;
  const faults = held.flatMap(([schema, value]) => {
    const { success, error } = schema.safeParse(value);
    return success ? [] : [error.message];
  });
  console.log(JSON.stringify({ line: number, faults }));
}
