export interface Item { label: string; content: string; content_type: string }
export interface Request {
  id: number;
  kind: "grade" | "preference" | "ranking";
  question: string;
  query: { content: string; [key: string]: unknown };
  items: Item[];
  /** Names of the grades, worst first; or whether ties are allowed. */
  scale: unknown;
  seed: number;
  /** Microseconds since 1970 until which it is held. */
  lease_until: number;
}
export type Answer = { grade: number | string } | { winner: string } | { ranking: unknown } | { answers: Record<string, unknown> };
export interface Judgment { request: number; answer: Answer; seconds?: number | null; submission?: string }
export interface Given { requests: Request[]; reason?: string; retry_after?: number | null }
export interface Result { status: number; error?: { type: string; message: string }; [key: string]: unknown }
export interface Options { /** Seconds over which a call that fails in passing is repeated. */ patience?: number }
export declare class CallError extends Error { status: number; type: string }
export declare class Client {
  constructor(url: string, token?: string, options?: Options);
  static join(url: string, invite: string, name?: string, options?: Options): Promise<Client>;
  readonly token: string;
  requests(n?: number): Promise<Given>;
  submit(judgments: Judgment[]): Promise<Result[]>;
  skip(request: number, reason?: string): Promise<void>;
  me(): Promise<Record<string, unknown>>;
}
