import type { FastifyReply, FastifyRequest } from "fastify";
import type { ScanOptions } from "../../../core/index.ts";
import type { Service } from "../../service.ts";

/** Transactions that a page examines for one unit of rate. */
const EXAMINED_PER_UNIT = 500;

interface ListCall {
  readonly service: Pick<Service, "turns">;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * Reads pages of lists for a request, which costs what they examine. After each unit it waits for a
 * turn of the application, or of the owner. From the first one on it is its only such request:
 * pages read the store in many steps, and twenty of them together would leave little time for
 * others.
 *
 * @param read - takes the options of each page from its argument
 */
export async function examining<T>(
  { service: { turns }, request, reply }: ListCall,
  read: (optionsOfPage: () => ScanOptions) => PromiseLike<T>,
): Promise<T> {
  const { account, principal, owner } = request;
  const tenant = principal?.applicationId ?? owner;
  let paid = 0;
  let isAlone = false;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const alone = (name: string) =>
    new Promise<void>((begin) => {
      isAlone = true;
      turns.alone(`pages ${name}`, () => {
        begin();
        return ended;
      });
    });
  const optionsOfPage = () => {
    const first = paid + 1;
    paid = first;
    account?.pay(first);
    return {
      async onExamined(transactions: number) {
        const units = first + Math.floor(transactions / EXAMINED_PER_UNIT);
        if (units <= paid) return;
        paid = units;
        account?.pay(units);
        if (!tenant) return;
        if (!isAlone) await alone(tenant);
        await turns.turn(tenant, reply.raw);
      },
    };
  };
  try {
    return await read(optionsOfPage);
  } finally {
    end();
  }
}
