/** A password hash of another product, parsed from its text. */
export interface ForeignHash {
  /** Whether its cost parameters exceed the limits: then it is never computed. */
  isTooCostly: boolean;
  /** Memory needed, in bytes. */
  memory: number;
  /** Computes on threads, never on the event loop. */
  matches(password: string): Promise<boolean>;
}

/** Parses the hashes of one family. Undefined for any other text. */
export type HashFamily = (stored: string) => ForeignHash | undefined;
