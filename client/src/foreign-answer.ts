/** An error that is not JSON: a proxy answered instead of the service. */
export class ForeignAnswer extends Error {
  readonly response: Response;

  constructor(response: Response, cause: unknown) {
    super(`HTTP ${response.status}, not from the service`, { cause });
    this.response = response;
  }
}
