/** What a request has in its header Authorization: a bearer credential (RFC 6750), or a token with a proof (RFC 9449). */
export interface Credential {
  token: string;
  /** Undefined for a bearer credential. */
  proof?: Proof;
}

/** The calls of a batch share this object, and so the one use of the proof. */
export interface Proof {
  /** The header DPoP; empty without one. */
  jwt: string;
  method: string;
  /** The address of the request without its query. */
  url: string;
}

/** The signatures of proofs that are accepted. */
export const proofAlgorithms = ['ES256', 'Ed25519', 'EdDSA'] as const;

/** The header WWW-Authenticate (RFC 6750 section 3.1, RFC 9449 section 7.1). */
export const challengeOf = ({ proof }: Credential, parameters: string): string =>
  proof ? `DPoP ${parameters}, algs="${proofAlgorithms.join(' ')}"` : `Bearer ${parameters}`;
