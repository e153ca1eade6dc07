/** A stored password hash of another product, as its text describes it. */
export interface ForeignHash {
  /** Whether its parameters would take so much time or memory that it is never computed. */
  isTooCostly: boolean;
  /** Computes on threads, never on the event loop. */
  matches(password: string): Promise<boolean>;
}

/** Reads the texts of one kind of hash; undefined for any other text. */
export type HashFamily = (stored: string) => ForeignHash | undefined;
