"""Two learning rates with two seeds each, side by side; called again, it goes on or just reads.

python examples/sweep.py
"""

import operant


def main() -> None:
    """Print the table, and which learning rate came out best."""
    found = operant.sweep(
        "a2c",
        "CartPole-v1",
        seeds=2,
        grid={"agent.lr": [1e-3, 1e-4]},
        steps=2_000,
        eval={"episodes": 10, "every": 2_000},
    )
    print(found)
    best = max(found.rows, key=lambda row: row.iqm)
    print(f"best: {best.label}, {best.iqm:.1f} over seeds {best.seeds}")


if __name__ == "__main__":
    main()
