import type { LoginMethod } from '../../shared/method-names.ts';

/** A login from a new device, reported by mail. `at` in milliseconds since 1970 (database clock). */
export interface ReportedLogin {
  at: number;
  method: LoginMethod;
  address: string;
  /** The device in words. */
  device: string;
}

declare const login: unique symbol;
/** A reported login as JSON, at most 255 characters: the length of the column. */
export type LoginDetail = string & { readonly [login]: true };

export const toDetail = ({ at, address, device }: ReportedLogin) =>
  JSON.stringify({ at, address, device }) as LoginDetail;

export const fromDetail = (detail: LoginDetail) => JSON.parse(detail) as Omit<ReportedLogin, 'method'>;
