export interface Item { label: string; content: string; content_type: string }
export interface Request {
  id: number;
  kind: "grade" | "preference" | "ranking";
  question: string;
  query: Record<string, string>;
  items: Item[];
  /** Names of the grades, worst first; or whether ties are allowed. */
  scale: unknown;
  seed: number;
  /** Microseconds since 1970 until which it is held. */
  lease_until: number;
  /** Where the campaign asks several questions: each by its name, kind and text. */
  questions?: Record<string, unknown>[] | null;
  cant_tell?: boolean | null;
}
export type Answer =
  | { grade: number }
  | { winner: "a" | "b" | "tie"; strength?: number }
  /** Labels of items, best first; those of one list tie. */
  | { order: string[][] }
  | { cant_tell: true }
  | { answers: Record<string, unknown> };
export interface Judgment { request: number; answer: Answer; seconds?: number | null; comment?: string; replaces?: string | null; submission?: string }
export interface Given { requests: Request[]; reason?: string | null; retry_after?: number | null; completion?: Record<string, string> | null }
export interface Result { status: number; seq?: number; replayed?: boolean; counted?: boolean; error?: { type: string; message: string }; [key: string]: unknown }
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
