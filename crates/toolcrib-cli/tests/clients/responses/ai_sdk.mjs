// A task of three turns with Vercel's AI SDK: `ai_sdk.mjs responses|chat REQUEST`.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenResponses } from "@ai-sdk/open-responses";
import * as ai from "ai";
import { z } from "zod";

const [mode, request] = [process.argv[2], JSON.parse(process.argv[3])];
const provider =
    mode === "responses"
        ? createOpenResponses({ name: "toolcrib", url: `${request.base_url}/responses`, apiKey: request.token })
        : createOpenAICompatible({ name: "toolcrib", baseURL: request.base_url, apiKey: request.token });
const tools = {
    look: ai.tool({
        description: "Look.",
        inputSchema: z.object({ at: z.string() }),
        execute: async () => "a tree",
    }),
};
const texts = [];
const messages = [];
for (const prompt of ["Hello.", "Say hi, and look at x.", "And again?"]) {
    messages.push({ role: "user", content: prompt });
    const stopWhen = (ai.isStepCount ?? ai.stepCountIs)(5);
    const result = await ai.generateText({ model: provider("default"), tools, messages, stopWhen, maxRetries: 0 });
    messages.push(...result.response.messages);
    texts.push(result.text);
}
console.log(JSON.stringify({ texts }));
