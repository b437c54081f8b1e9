// Drives a server with the TypeScript SDK's client, and its tasks with ext-tasks.
//
// It is given one JSON object: `way` says how to reach the server, `cases` what to call. With `way.listen` each task is
// listened to. It prints one JSON line for each thing that it saw; the test that started it knows what is right.

import { readFileSync } from 'node:fs';

import { Client, SdkError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient, JsonRpcResponseError } from '@modelcontextprotocol/ext-tasks/client';

const { way, cases } = JSON.parse(process.argv.at(-1));
const ENDED = ['completed', 'failed', 'cancelled'];
const clientInfo = { name: 'longshore-tests', version: '0' };
const clientCapabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };

function say(what, facts) {
  console.log(JSON.stringify({ what, ...facts }));
}

function transportOf({ url, command, arguments: args }) {
  if (url !== undefined) return new StreamableHTTPClientTransport(new URL(url));
  return new StdioClientTransport({ command, args, stderr: 'ignore' });
}

function version(name) {
  return JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version;
}

// The SDK cannot send what belongs to tasks and ext-tasks has no transport, so that the host has to bring them together:
// the requests of ext-tasks go over the SDK's own transport, which writes their headers, under ids of their own.
function beside(transport) {
  const waiting = new Map();
  const others = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const settle = waiting.get(message.id);
    if (settle === undefined) return others(message, extra);
    waiting.delete(message.id);
    settle('error' in message ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
  };
  let number = 0;
  return (request, { signal } = {}) =>
    new Promise((resolve, reject) => {
      const id = `beside-${(number += 1)}`;
      waiting.set(id, resolve);
      transport.send({ jsonrpc: '2.0', id, ...request }, { requestSignal: signal }).catch(reject);
    });
}

function result({ content, structuredContent, isError }) {
  return {
    end: 'result',
    isError: isError ?? false,
    kinds: content.map((block) => block.type),
    texts: content.filter((block) => block.type === 'text').map((block) => block.text),
    structured: structuredContent ?? null,
  };
}

function error(end, { code, data }) {
  return { end, code, reason: data?.reason ?? null };
}

// Whether what a subscription was granted names the tasks.
let showsGrants = true;
// What the server said of each task in notifications, and who waits for the end of one.
const told = new Map();
const waiters = new Map();

function notified({ method, params }) {
  if (method !== 'notifications/tasks') return;
  told.set(params.taskId, params.status);
  if (ENDED.includes(params.status)) waiters.get(params.taskId)?.();
}

// The end of a cancelled task by the server's own word.
async function reallyEnded(session, taskId) {
  if (way.listen) {
    await new Promise((resolve) => {
      waiters.set(taskId, resolve);
      if (ENDED.includes(told.get(taskId))) resolve();
    });
    return told.get(taskId);
  }
  for (;;) {
    // While nothing is new it is answered late.
    const { status } = await session.task(taskId).snapshot();
    if (ENDED.includes(status)) return status;
  }
}

async function outcome(session, execution, { cancel }) {
  const seen = [];
  const onEvent = ({ task }) => {
    if (task !== undefined && task.status !== seen.at(-1)) seen.push(task.status);
  };
  if (cancel) {
    // For ext-tasks a task is cancelled once its cancel is acknowledged; here it is once the server says so.
    await execution.cancel();
    return { end: await reallyEnded(session, execution.handle.taskId) };
  }
  const { outcome } = await execution.settle({ onEvent });
  const shown = execution.kind === 'task' ? seen : null;
  if (outcome.status === 'failed') return { ...error('failed', outcome.error), seen: shown };
  return { ...result(outcome.result), seen: shown };
}

async function call(client, session, kase) {
  if (session === undefined) return await callAndWait(client, kase);
  try {
    const execution = await session.callTool(kase.tool, kase.arguments, { metadata: kase.meta });
    if (!way.listen || execution.kind !== 'task') return await outcome(session, execution, kase);
    const subscription = await client.listen({ taskIds: [execution.handle.taskId] });
    showsGrants &&= 'taskIds' in subscription.honoredFilter;
    const told = await outcome(session, execution, kase);
    await subscription.close();
    return told;
  } catch (failed) {
    if (!(failed instanceof JsonRpcResponseError)) throw failed;
    return { ...error('error', failed), seen: null };
  }
}

// Without tasks: the call is held until its end.
async function callAndWait(client, kase) {
  try {
    return { ...result(await client.callTool({ name: kase.tool, arguments: kase.arguments, _meta: kase.meta })), seen: null };
  } catch (failed) {
    if (typeof failed.code !== 'number') throw failed;
    return { ...error('error', failed), seen: null };
  }
}

// What there is to read and to fill in.
async function library(client) {
  const read = async (uri) => (await client.readResource({ uri })).contents[0];
  const listed = await read('recipe:all');
  const missing = await read('recipe:gruel').then(
    () => null,
    (failed) => failed.code,
  );
  const { messages } = await client.getPrompt({ name: 'plan-meal', arguments: { dish: 'omelette' } });
  const proposed = async (ref, value) =>
    (await client.complete({ ref, argument: { name: 'dish', value } })).completion.values;
  say('library', {
    resources: (await client.listResources()).resources.map((resource) => resource.uri),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
    prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
    read: [listed.uri, listed.mimeType, listed.text, (await read('recipe:omelette')).text],
    missing,
    prompt: messages.map(({ role, content }) => [role, content.text]),
    proposed: [
      await proposed({ type: 'ref/prompt', name: 'plan-meal' }, 'p'),
      await proposed({ type: 'ref/resource', uri: 'recipe:{dish}' }, 'o'),
    ],
  });
}

async function lacks(client) {
  if (!showsGrants) say('lacks', { feature: 'the task ids that a subscription was granted: honoredFilter leaves them out' });
  try {
    await client.callTool({ name: 'long-job', arguments: { steps: 1, 'step-ms': 1 } });
  } catch (failed) {
    if (!(failed instanceof SdkError) || failed.code !== 'UNSUPPORTED_RESULT_TYPE') throw failed;
    say('lacks', { feature: 'tasks of its own: without ext-tasks it throws UNSUPPORTED_RESULT_TYPE' });
  }
}

const transport = transportOf(way);
const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: way.mode },
});
client.fallbackNotificationHandler = async (notification) => notified(notification);
let answer;
// In a session a question is a request to the client.
if (way.mode === 'legacy') client.setRequestHandler('elicitation/create', async () => answer);
await client.connect(transport);
// What went wrong in the background: a notification that is not as it should be, for one.
const troubles = [];
const session = way.mode === 'legacy' ? undefined : createTaskSessionFromClient(client, {
  endpointId: 'longshore',
  rawDispatch: beside(transport),
  v2RequestFraming: { protocolVersion: client.getNegotiatedProtocolVersion(), clientInfo, clientCapabilities },
  onInputRequest: async () => answer,
  onError: (failed) => troubles.push(failed),
});
say('client', {
  name: `@modelcontextprotocol/client ${version('@modelcontextprotocol/client')} with ext-tasks ${version('@modelcontextprotocol/ext-tasks')}`,
  revision: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion().name,
});
say('list', { tools: (await client.listTools()).tools.map((tool) => tool.name) });
await library(client);
for (const kase of cases) {
  answer = kase.answer;
  say(kase.what, await call(client, session, kase));
}
if (session !== undefined) await lacks(client);
if (troubles.length > 0) throw troubles[0];
await session?.close();
await client.close();
