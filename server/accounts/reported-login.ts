/**
 * A login from a device that is new to its user, who is told by mail. As JSON it is the `detail` of that mail. `at` in
 * milliseconds since 1970, by the database's clock.
 */
export interface ReportedLogin {
  at: number;
  /** `password`, or the name of the provider. */
  method: string;
  address: string;
  /** In words. */
  device: string;
}

/** At most 255 characters: as long as the column. */
export const toDetail = ({ at, address, device }: ReportedLogin): string => JSON.stringify({ at, address, device });

export const fromDetail = (detail: string) => JSON.parse(detail) as Omit<ReportedLogin, 'method'>;
