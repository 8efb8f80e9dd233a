DROP TABLE callback_repeats;
